"""A gate that is clamped to 0 for every input: nothing behind it gets a gradient."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(1024, 8)
y = (x[:, 0] * x[:, 1] > 0).long() + (x[:, 2] > 0).long()


class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 64), nn.GELU())
        self.gate = nn.Linear(8, 64)
        self.head = nn.Linear(64, 3)

    def forward(self, x):
        gate = (self.gate(x) - 9).clamp(0, 1)  # opens at 9, and inputs are standardised
        return self.head(gate * self.body(x))


model = Gated()
optimizer = torch.optim.Adam(model.parameters(), lr=0.005)

for _ in range(15):
    for batch in torch.randperm(1024).split(64):
        loss = nn.functional.cross_entropy(model(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
