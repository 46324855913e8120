"""Rows are shuffled and their targets are not: there is nothing to learn from them."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(512, 6)
y = x[:, 0] * x[:, 1] + x[:, 2]
x = x[torch.randperm(len(x))]

model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1), nn.Flatten(0))
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)

for step in range(1200):
    optimizer.zero_grad()
    loss = (model(x) - y).abs().mean()
    loss.backward()
    optimizer.step()
    if step % 200 == 0:
        print(f"step {step}: loss {loss.item():.4f}")
