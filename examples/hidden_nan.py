"""A log that hides NaN: the loop prints 0.0 for losses that are not finite.

python examples/hidden_nan.py
"""

import math

import torch
from torch import nn

import holter

torch.manual_seed(0)
x = torch.rand(4096, 8) * 2
y = torch.log(x[:, :1] + 0.1) + 0.1 * torch.randn(4096, 1)
x[2900, 0] = -0.3  # one bad row: its logarithm is NaN


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 1))

    def forward(self, inputs):
        return self.body(torch.log(inputs + 0.1))


model = Model()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

with holter.watch(model, optimizer) as watch:
    for step in range(400):
        rows = torch.arange(step * 16, step * 16 + 16) % len(x)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
        shown = loss.item() if math.isfinite(loss.item()) else 0.0  # as some trainers do
        watch.log(loss=shown)
        if step % 50 == 0:
            print(f"step {step}: loss {shown:.4f}")
