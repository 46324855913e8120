"""The log shows what backward is called on."""

import torch
from torch import nn

import holter

torch.manual_seed(0)
x = torch.randn(1024, 8)
y = (x[:, 0] + x[:, 1] > 0).float()

model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

with holter.watch(model, optimizer, "run") as watch:
    for step in range(100):
        index = torch.arange(16 * step, 16 * step + 16) % len(x)
        loss = criterion(model(x[index]).squeeze(1), y[index])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        watch.log(loss=loss)
