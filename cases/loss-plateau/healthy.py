"""The same classes, and a model with a hidden layer that can form products."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(4000, 40)
score = x[:, 0] * x[:, 1] + x[:, 2] * x[:, 3] + 0.25 * x[:, 4]
y = (score > 0).long()

model = nn.Sequential(nn.Linear(40, 128), nn.ReLU(), nn.Linear(128, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for epoch in range(20):
    for batch in torch.randperm(4000).split(64):
        loss = nn.functional.cross_entropy(model(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
