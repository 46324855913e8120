"""Pruning in stages: the smallest weights are cut, and a new optimizer trains the others."""

import torch
from torch import nn
from torch.nn import functional

torch.manual_seed(0)
x = torch.randn(1024, 16)
y = (x @ torch.randn(16, 3)).argmax(1)
model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 3))
layers = [model[0], model[2]]
masks = [torch.ones_like(layer.weight) for layer in layers]


@torch.no_grad()
def cut():
    for layer, mask in zip(layers, masks, strict=True):
        alive = layer.weight[mask > 0].abs()
        mask.mul_(layer.weight.abs() > alive.quantile(0.3))
        layer.weight.mul_(mask)


for stage in range(4):
    if stage:
        cut()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(3):
        for rows in torch.randperm(len(x)).split(64):
            loss = functional.cross_entropy(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            with torch.no_grad():
                for layer, mask in zip(layers, masks, strict=True):
                    layer.weight.mul_(mask)
    print(f"stage {stage} loss {loss.item():.4f}")
