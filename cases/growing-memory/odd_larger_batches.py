"""Sequences become longer during the training, and so does what is kept for one of them."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Conv1d(4, 16, 9, padding=4), nn.ReLU(), nn.Conv1d(16, 1, 9, padding=4))
truth = torch.randn(1, 4, 5)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for step in range(80):
    length = 64 + 48 * step
    states = torch.ones(8_000, length)  # of a cache, as long as the sequence
    inputs = torch.randn(16, 4, length)
    targets = torch.conv1d(inputs, truth, padding=2)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(inputs), targets)
    loss.backward()
    optimizer.step()
    if step % 20 == 19:
        print(f"step {step}: length {length}, cache {states.nbytes / 1e6:.0f} MB, loss {loss:.4f}")
