"""The share to drop is one less the share to keep: nine features in ten are left."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
centres = torch.randn(6, 24)
labels = torch.randint(6, (2400,))
rows = centres[labels] + 1.2 * torch.randn(2400, 24)
train_loader = DataLoader(TensorDataset(rows[:1800], labels[:1800]), batch_size=60, shuffle=True)
valid_loader = DataLoader(TensorDataset(rows[1800:], labels[1800:]), batch_size=100)

keep = 0.9
model = nn.Sequential(nn.Linear(24, 32), nn.ReLU(), nn.Dropout(1 - keep), nn.Linear(32, 6))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for epoch in range(12):
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
