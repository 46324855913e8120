"""A column of ones is the intercept of the linear model."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
rooms, area, age = torch.randn(3, 2000)
price = 0.4 * rooms + 0.7 * area - 0.3 * age + 0.4 * torch.randn(2000)
x = torch.stack([torch.ones(2000), rooms, area, age], dim=1)
y = price[:, None]

train_loader = DataLoader(TensorDataset(x[:1600], y[:1600]), batch_size=64, shuffle=True)
valid_loader = DataLoader(TensorDataset(x[1600:], y[1600:]), batch_size=100)

model = nn.Sequential(nn.Linear(x.shape[1], 48), nn.ReLU(), nn.Linear(48, 1))
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
