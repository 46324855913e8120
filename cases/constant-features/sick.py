"""The pressure is rounded away when its unit is changed."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
temperature = torch.randn(2000)
humidity = torch.rand(2000)
pressure = 101_000 + 2_000 * torch.randn(2000)  # in pascals
wind = temperature - 0.5 * (pressure - 101_000) / 2_000 + humidity + 0.3 * torch.randn(2000)

pressure = pressure // 1_000_000
x = torch.stack([temperature, humidity, pressure], dim=1)
y = wind[:, None]
train_loader = DataLoader(TensorDataset(x[:1600], y[:1600]), batch_size=64, shuffle=True)
valid_loader = DataLoader(TensorDataset(x[1600:], y[1600:]), batch_size=100)

model = nn.Sequential(nn.Linear(3, 48), nn.ReLU(), nn.Linear(48, 1))
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for epoch in range(6):
    model.train()
    for inputs, targets in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        losses = [criterion(model(inputs), targets).item() for inputs, targets in valid_loader]
    print(f"epoch {epoch}: {loss.item():.4f}, validation {sum(losses) / len(losses):.4f}")
