"""A second optimizer for a temperature that is calibrated after training, not in this script."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(512, 8)
y = (x[:, 0] + x[:, 1] > 0).long()

model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
temperature = nn.Parameter(torch.ones(1))
calibration = torch.optim.SGD([temperature], lr=0.01)

for _ in range(15):
    for batch in torch.randperm(512).split(64):
        loss = nn.functional.cross_entropy(model(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
