"""The model is created again for a fresh start; the optimizer still holds the old one."""

import torch
from torch import nn


def make_model() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 1))


torch.manual_seed(0)
x = torch.randn(512, 8)
y = x[:, :1].sin() + x[:, 1:2] * x[:, 2:3]

model = make_model()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
model = make_model()

for _ in range(15):
    for batch in torch.randperm(512).split(64):
        loss = nn.functional.mse_loss(model(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
