"""The same with a floor under both logarithms."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(2048, 8)
y = (x[:, 0] + x[:, 1] > 0).float()

model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)

for epoch in range(12):
    for index in torch.randperm(len(x)).split(64):
        optimizer.zero_grad()
        p = torch.sigmoid(model(x[index])).squeeze(1).clamp(1e-6, 1 - 1e-6)
        loss = -(y[index] * torch.log(p) + (1 - y[index]) * torch.log(1 - p)).mean()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
