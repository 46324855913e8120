"""The sum of losses for the log keeps the graph of every step."""

import torch
from torch import nn

torch.manual_seed(0)
truth = torch.randn(8, 1)
model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

total = 0
for step in range(200):
    inputs = torch.randn(32, 8)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(inputs), inputs @ truth + 0.1 * torch.randn(32, 1))
    loss.backward()
    optimizer.step()
    total += loss
    if step % 50 == 49:
        print(f"step {step}: mean loss {total / (step + 1):.4f}")
