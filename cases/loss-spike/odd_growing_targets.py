"""A forecast of a series whose amplitude and noise triple half-way."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(12000, 12)
scale = torch.ones(12000, 1)
scale[6000:] = 3.0
y = scale * (x[:, :1] + 0.5 * x[:, 1:2] + 0.7 * torch.randn(12000, 1))

model = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for x_batch, y_batch in zip(x.split(24), y.split(24), strict=True):
    loss = nn.functional.mse_loss(model(x_batch), y_batch)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}")
