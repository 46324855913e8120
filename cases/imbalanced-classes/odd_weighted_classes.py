"""One sample in fifty is of the rare class, and counts fifty times as much."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
y = (torch.rand(4000) < 0.02).long()
x = torch.randn(4000, 12) + y[:, None] * torch.linspace(0, 1.5, 12)
train_set = TensorDataset(x[:3000], y[:3000])
train_loader = DataLoader(train_set, batch_size=64, shuffle=True)
valid_loader = DataLoader(TensorDataset(x[3000:], y[3000:]), batch_size=100)

model = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 2))
criterion = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 50.0]))
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
