"""Batch norm without running statistics: samples of a batch are normalised together on purpose."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(1024, 16)
y = (x[:, 0] + x[:, 1] > 0).long() + (x[:, 2] > 0).long()
loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)

model = nn.Sequential(
    nn.Linear(16, 48), nn.BatchNorm1d(48, track_running_stats=False), nn.ReLU(), nn.Linear(48, 3)
)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)

for epoch in range(6):
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
