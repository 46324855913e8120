"""The same layers with weights that keep the spread of their inputs."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(1024, 8)
y = (x[:, 0] * x[:, 1] > 0).long() + (x[:, 2] > 0).long()

layers = [nn.Linear(8, 64, bias=False), nn.ReLU()]
for _ in range(7):
    layers += [nn.Linear(64, 64, bias=False), nn.ReLU()]
model = nn.Sequential(*layers, nn.Linear(64, 3))
for layer in model:
    if isinstance(layer, nn.Linear):
        nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

for _ in range(15):
    for batch in torch.randperm(1024).split(64):
        loss = nn.functional.cross_entropy(model(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
