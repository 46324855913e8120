"""Ten sigmoid layers in a row: each passes on at most a quarter of the gradient."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(1024, 8)
y = (x[:, 0] * x[:, 1] > 0).long() + (x[:, 2] > 0).long()

layers = [nn.Linear(8, 48), nn.Sigmoid()]
for _ in range(9):
    layers += [nn.Linear(48, 48), nn.Sigmoid()]
model = nn.Sequential(*layers, nn.Linear(48, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

for _ in range(15):
    for batch in torch.randperm(1024).split(64):
        loss = nn.functional.cross_entropy(model(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
