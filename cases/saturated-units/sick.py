"""Biases begin at 7: every sigmoid sits at 1 from the first step on."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(1024, 8)
y = (x[:, 0] * x[:, 1] > 0).long() + (x[:, 2] > 0).long()

model = nn.Sequential(
    nn.Linear(8, 64), nn.Sigmoid(), nn.Linear(64, 64), nn.Sigmoid(), nn.Linear(64, 3)
)
for layer in (model[0], model[2]):
    nn.init.constant_(layer.bias, 7.0)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)

for _ in range(20):
    for batch in torch.randperm(1024).split(64):
        loss = nn.functional.cross_entropy(model(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
