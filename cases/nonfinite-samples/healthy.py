"""One is added to counts before the logarithm."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
centres = torch.rand(4, 12) * 20 + 4
y = torch.randint(4, (1600,))
counts = torch.poisson(centres[y])
x = counts.log1p() - 2.5
train_loader = DataLoader(TensorDataset(x[:1200], y[:1200]), batch_size=64, shuffle=True)
valid_loader = DataLoader(TensorDataset(x[1200:], y[1200:]), batch_size=100)

model = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 4))
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
