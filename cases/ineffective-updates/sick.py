"""Accumulation over four batches: gradients are cleared for each of them."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(1600, 8)
y = x[:, :1] + 0.5 * x[:, 1:2].square()
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
every = 4
for epoch in range(6):
    total = 0.0
    for step, rows in enumerate(torch.randperm(1600).split(20)):
        loss = nn.functional.mse_loss(model(x[rows]), y[rows])
        optimizer.zero_grad()
        (loss / every).backward()
        total += loss.item()
        if (step + 1) % every == 0:
            optimizer.step()
    print(f"epoch {epoch}: loss {total / 80:.4f}")
