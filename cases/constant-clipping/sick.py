"""Gradients are clipped to a norm of 0.0005: SGD is left with a tiny part of its learning rate."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(512, 16)
y = (x[:, 0] * x[:, 1] + x[:, 2] > 0).long()

model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 2))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

for epoch in range(25):
    for index in torch.randperm(len(x)).split(64):
        optimizer.zero_grad()
        loss = criterion(model(x[index]), y[index])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), max_norm=0.0005)
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
