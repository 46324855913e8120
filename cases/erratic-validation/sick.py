"""Validation takes four samples at random each time, of a noisy task."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(1200, 10)
y = x[:, 0] + 0.5 * x[:, 1] * x[:, 2] + 0.7 * torch.randn(1200)
train_x, train_y, valid_x, valid_y = x[:960], y[:960], x[960:], y[960:]

model = nn.Sequential(nn.Linear(10, 32), nn.Tanh(), nn.Linear(32, 1))
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

for epoch in range(16):
    model.train()
    for index in torch.randperm(len(train_x)).split(32):
        optimizer.zero_grad()
        loss = criterion(model(train_x[index]).squeeze(1), train_y[index])
        loss.backward()
        optimizer.step()
    model.eval()
    few = torch.randperm(len(valid_x))[:4]
    with torch.no_grad():
        valid = criterion(model(valid_x[few]).squeeze(1), valid_y[few])
    print(f"epoch {epoch}: {loss.item():.4f}, validation {valid.item():.4f}")
