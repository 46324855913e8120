"""A forecast of a series whose amplitude and noise triple half-way."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(19200, 12)
scale = torch.ones(19200, 1)
scale[9600:] = 3.0
y = scale * (x[:, :1] + 0.5 * x[:, 1:2] + 0.7 * torch.randn(19200, 1))

model = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for x_batch, y_batch in zip(x.split(24), y.split(24), strict=True):
    loss = nn.functional.mse_loss(model(x_batch), y_batch)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}")
