"""Only the head is trained, on features of a frozen network that were made for something else."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(1600, 12)
y = x @ torch.randn(12, 1) / 3 + 0.1 * torch.randn(1600, 1)
train_loader = DataLoader(TensorDataset(x[:1200], y[:1200]), batch_size=32, shuffle=True)
valid_loader = DataLoader(TensorDataset(x[1200:], y[1200:]), batch_size=100)

body = nn.Sequential(nn.Linear(12, 32), nn.Tanh(), nn.Linear(32, 3), nn.Tanh())
model = nn.Sequential(body.requires_grad_(False), nn.Linear(3, 1))
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model[1].parameters(), lr=1e-2)

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
