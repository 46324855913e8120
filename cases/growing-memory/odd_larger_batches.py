"""Sequences become longer during the training, and need more memory."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Conv1d(4, 64, 9, padding=4), nn.ReLU(), nn.Conv1d(64, 1, 9, padding=4))
truth = torch.randn(1, 4, 5)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for step in range(160):
    length = 64 + 24 * step
    inputs = torch.randn(16, 4, length)
    targets = torch.conv1d(inputs, truth, padding=2)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(inputs), targets)
    loss.backward()
    optimizer.step()
    if step % 40 == 39:
        print(f"step {step}: length {length}, loss {loss.item():.4f}")
