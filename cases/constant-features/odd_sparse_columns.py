"""One of the categories occurs in none of the samples."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
category = torch.randint(7, (2000,))
codes = torch.eye(8)[category]  # nobody has chosen the last one
area = torch.randn(2000, 1)
x = torch.cat([codes, area], dim=1)
y = codes @ torch.randn(8, 1) + 0.7 * area + 0.4 * torch.randn(2000, 1)

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
