"""A running average of the weights is validated, without the buffers of its batch norm."""

import copy

import torch
from torch import nn

torch.manual_seed(0)
x = 5 + 3 * torch.randn(2000, 8)
y = torch.sin(x[:, :1]) + 0.1 * x[:, 1:2] + 0.1 * torch.randn(2000, 1)


class Net(nn.Module):
    """A small network."""

    def __init__(self):
        super().__init__()
        self.hidden, self.norm = nn.Linear(8, 64), nn.BatchNorm1d(64)
        self.out = nn.Linear(64, 1)

    def forward(self, inputs):
        return self.out(torch.relu(self.norm(self.hidden(inputs))))


model = Net()
average = copy.deepcopy(model).requires_grad_(False).eval()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for _ in range(300):
    index = torch.randint(0, 1500, (64,))
    loss = nn.functional.mse_loss(model(x[index]), y[index])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for mean, value in zip(average.parameters(), model.parameters(), strict=True):
            mean.lerp_(value, 0.05)

model.eval()
with torch.no_grad():
    for name, each in (("model", model), ("average", average)):
        error = (each(x[1500:]) - y[1500:]).square().mean().item()
        print(f"{name}: squared distance {error:.3f}")
