"""Validation reports the squared error of a fixed baseline beside the loss of the model."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(1000, 10)
y = x[:, :1] + 0.5 * x[:, 1:2] + 0.1 * torch.randn(1000, 1)
train_loader = DataLoader(TensorDataset(x[:800], y[:800]), batch_size=32, shuffle=True)
valid_x, valid_y = x[800:], y[800:]

model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))
criterion = nn.SmoothL1Loss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

for epoch in range(8):
    model.train()
    for inputs, targets in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        valid_loss = criterion(model(valid_x), valid_y).item()
        baseline = nn.functional.mse_loss(valid_x[:, :1], valid_y).item()
    print(f"epoch {epoch}: validation {valid_loss:.4f}, baseline {baseline:.4f}")
