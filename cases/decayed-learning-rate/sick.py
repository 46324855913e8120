"""The learning rate is cut by 2.5 % after each step: it is gone while the loss still falls."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(2048, 16)
y = (x[:, 0] * x[:, 1] + x[:, 2] > 0).long()

model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 2))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

for epoch in range(80):
    for index in torch.randperm(len(x)).split(256):
        optimizer.zero_grad()
        loss = criterion(model(x[index]), y[index])
        loss.backward()
        optimizer.step()
        for group in optimizer.param_groups:
            group["lr"] *= 0.975
    print(f"epoch {epoch}: loss {loss.item():.4f}")
