"""A head that joins the model after the optimizer was built: it stays as random as it began."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(512, 8)
y = (x[:, 0] * x[:, 1] > 0).long() + (x[:, 2] > 0).long()

model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU())
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
model.append(nn.Linear(32, 3))

for _ in range(10):
    for batch in torch.randperm(512).split(64):
        loss = nn.functional.cross_entropy(model(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
