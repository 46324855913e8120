"""As many layers with ReLU, weights initialised for it, and a normalisation between them."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(1024, 8)
y = (x[:, 0] * x[:, 1] > 0).long() + (x[:, 2] > 0).long()

layers = [nn.Linear(8, 48), nn.LayerNorm(48), nn.ReLU()]
for _ in range(9):
    layers += [nn.Linear(48, 48), nn.LayerNorm(48), nn.ReLU()]
model = nn.Sequential(*layers, nn.Linear(48, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)

for _ in range(15):
    for batch in torch.randperm(1024).split(64):
        loss = nn.functional.cross_entropy(model(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
