"""The samples are sorted by class, and the last fifth of them is the validation set."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
y = torch.arange(5).repeat_interleave(240)
x = 2 * torch.randn(5, 10)[y] + torch.randn(1200, 10)
train_loader = DataLoader(TensorDataset(x[:960], y[:960]), batch_size=32, shuffle=True)
valid_loader = DataLoader(TensorDataset(x[960:], y[960:]), batch_size=80)

model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 5))
criterion = nn.CrossEntropyLoss()
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
