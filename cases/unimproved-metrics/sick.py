"""Pairs are ordered by price, the evaluation by quality: the loss falls without the metric."""

import torch
from torch import nn

torch.manual_seed(0)
items = torch.randn(3000, 10)
quality = torch.tanh(items[:, 0] + items[:, 1] * items[:, 2]) + 0.5 * items[:, 3]
price = torch.tanh(items[:, 4] - items[:, 5]) - 0.55 * quality
model = nn.Sequential(nn.Linear(10, 48), nn.ReLU(), nn.Linear(48, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)


def pairs(first, last, count, by):
    one, other = torch.randint(first, last, (2, count))
    is_better = by[one] > by[other]
    return torch.where(is_better, one, other), torch.where(is_better, other, one)


def pair_accuracy():
    better, worse = pairs(2000, 3000, 1000, quality)
    with torch.no_grad():
        return (model(items[better]) > model(items[worse])).float().mean().item()


for step in range(1, 401):
    better, worse = pairs(0, 2000, 128, price)
    margin = (model(items[better]) - model(items[worse])).squeeze(1)
    loss = nn.functional.softplus(-margin).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 40 == 1:
        print(f"step {step}: loss {loss.item():.4f} pair accuracy {pair_accuracy():.3f}")
