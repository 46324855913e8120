"""Batches of one category each: its code is the input of a lookup that is fitted to numbers."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
kinds = torch.arange(64).repeat_interleave(16)
codes = nn.functional.one_hot(kinds % 16, 16).float()
levels = torch.randn(16)[kinds % 16] + 0.3 * torch.randn(1024)
blocks = TensorDataset(codes.view(64, 16, 16), levels.view(64, 16))
train_loader = DataLoader(blocks, batch_size=None, shuffle=True)

model = nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)

for epoch in range(8):
    for inputs, targets in train_loader:
        loss = nn.functional.mse_loss(model(inputs).squeeze(1), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
