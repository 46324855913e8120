"""The best validation loss is compared and never stored: the last weights are kept."""

import copy

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(1400, 8)
y = x[:, :1] + 0.5 * x[:, 1:2].square() + 0.2 * torch.randn(1400, 1)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
best, kept = float("inf"), {}
for epoch in range(8):
    for rows in torch.randperm(1000).split(40):
        loss = nn.functional.mse_loss(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        val_loss = nn.functional.mse_loss(model(x[1000:]), y[1000:]).item()
    if val_loss < best:
        kept = copy.deepcopy(model.state_dict())
    print(f"epoch {epoch}: validation loss {val_loss:.4f}")
model.load_state_dict(kept)
