"""Adam is created at the start of every epoch: its moments are lost each time."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(1024, 8)
y = torch.sin(2 * x[:, :1]) + 0.5 * x[:, 1:2] + 0.1 * torch.randn(1024, 1)

model = nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 1))
criterion = nn.MSELoss()

for epoch in range(12):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for index in torch.randperm(len(x)).split(64):
        optimizer.zero_grad()
        loss = criterion(model(x[index]), y[index])
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
