"""A loss spike that leaves damage: a few corrupt batches, and Adam without clipping.

holter doctor examples/night_spike.py
"""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(40_000, 16)
y = torch.sin(2 * x[:, :1]) * x[:, 1:2] + 0.5 * x[:, 2:3].abs() + 0.3 * torch.randn(40_000, 1)
x[16_000:16_192] *= 400  # three batches in other units

model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for step in range(600):
    batch = slice(step * 64, step * 64 + 64)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x[batch]), y[batch])
    loss.backward()
    optimizer.step()
    if step % 25 == 0 or 248 <= step <= 256:
        print(f"step {step}: loss {loss.item():.4f}")
