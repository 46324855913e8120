"""Validation measures the model as it is after each epoch."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(1000, 10)
y = (x[:, 0] + x[:, 1] > 0).long() + (x[:, 2] > 0).long()
train_loader = DataLoader(TensorDataset(x[:800], y[:800]), batch_size=32, shuffle=True)
valid_loader = DataLoader(TensorDataset(x[800:], y[800:]), batch_size=100)

model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 3))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

for epoch in range(8):
    model.train()
    for inputs, labels in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        losses = [criterion(model(inputs), labels).item() for inputs, labels in valid_loader]
    print(f"epoch {epoch}: {loss.item():.4f}, validation {sum(losses) / len(losses):.4f}")
