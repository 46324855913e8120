"""Layers are frozen one after another, from the input on, as they have settled."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(512, 8)
y = (x[:, 0] * x[:, 1] > 0).long()

blocks = [nn.Sequential(nn.Linear(n, 32), nn.ReLU()) for n in (8, 32)]
model = nn.Sequential(*blocks, nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

for epoch in range(24):
    if epoch in (8, 12):
        model[(epoch - 8) // 4].requires_grad_(False)
    for batch in torch.randperm(512).split(64):
        loss = nn.functional.cross_entropy(model(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
