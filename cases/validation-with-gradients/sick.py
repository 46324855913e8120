"""Validation runs in eval mode, but without `no_grad`."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(1000, 12)
y = (x[:, 0] > 0).long() + (x[:, 1] + x[:, 2] > 0).long()
train_loader = DataLoader(TensorDataset(x[:800], y[:800]), batch_size=32, shuffle=True)
valid_loader = DataLoader(TensorDataset(x[800:], y[800:]), batch_size=50)

model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 3))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)


def validate():
    model.eval()
    return sum(criterion(model(inputs), labels).item() for inputs, labels in valid_loader)


for epoch in range(6):
    model.train()
    for inputs, labels in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: {loss.item():.4f}, validation {validate() / len(valid_loader):.4f}")
