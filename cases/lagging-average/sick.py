"""The decay of a running average is too close to 1 for the run: it keeps the initial weights."""

import copy

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(2000, 8)
y = torch.sin(2 * x[:, :1]) + x[:, 1:2] * x[:, 2:3] + 0.1 * torch.randn(2000, 1)


class Net(nn.Module):
    """A small network."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 1))

    def forward(self, inputs):
        return self.layers(inputs)


model = Net()
average = copy.deepcopy(model).requires_grad_(False)
decay = 0.9995
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for _ in range(400):
    index = torch.randint(0, 1500, (64,))
    loss = nn.functional.mse_loss(model(x[index]), y[index])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for mean, value in zip(average.parameters(), model.parameters(), strict=True):
            mean.mul_(decay).add_(value, alpha=1 - decay)

with torch.no_grad():
    for name, each in (("model", model), ("average", average)):
        error = (each(x[1500:]) - y[1500:]).square().mean().item()
        print(f"{name}: squared distance {error:.3f}")
