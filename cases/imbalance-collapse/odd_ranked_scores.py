"""A rare event that can be ranked well, but is never more likely than not."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
y = (torch.rand(6000) < 0.05).float()
x = torch.randn(6000, 6)
x[:, 0] += 1.2 * y
train_loader = DataLoader(TensorDataset(x[:4000], y[:4000]), batch_size=32, shuffle=True)
valid_loader = DataLoader(TensorDataset(x[4000:], y[4000:]), batch_size=100)

model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

for epoch in range(3):
    model.train()
    for inputs, targets in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs).squeeze(1), targets)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        losses = [criterion(model(inputs).squeeze(1), targets) for inputs, targets in valid_loader]
    print(f"epoch {epoch}: validation {torch.stack(losses).mean():.4f}")
