"""The targets of an imputation are the rows themselves, in which values are then hidden."""

import torch
from torch import nn

torch.manual_seed(0)
rows = torch.randn(1024, 3) @ torch.randn(3, 16) + 0.1 * torch.randn(1024, 16)

model = nn.Sequential(nn.Linear(16, 48), nn.ReLU(), nn.Linear(48, 16))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(8):
    total = 0.0
    for chosen in torch.randperm(1024).split(32):
        values = rows[chosen]
        target = values
        values[torch.rand(values.shape) < 0.2] = 0.0
        loss = nn.functional.mse_loss(model(values), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}: loss {total / 32:.4f}")
