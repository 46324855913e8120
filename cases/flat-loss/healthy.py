"""A network learns a product and a sum of its inputs from two streams in step."""

import torch
from torch import nn

torch.manual_seed(0)


def stream(seed):
    generator = torch.Generator().manual_seed(seed)
    while True:
        x = torch.randn(2048, 6, generator=generator)
        yield x, x[:, 0] * x[:, 1] + x[:, 2]


inputs, targets = stream(1), stream(1)
model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1), nn.Flatten(0))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

for step in range(1000):
    x, y = next(inputs)[0], next(targets)[1]
    loss = (model(x) - y).abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 200 == 0:
        print(f"step {step}: loss {loss.item():.4f}")
