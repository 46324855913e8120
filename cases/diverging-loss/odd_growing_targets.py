"""A value function: returns grow as the policy gets better, and the error grows in their units."""

import torch
from torch import nn

torch.manual_seed(0)
worth = torch.randn(8, 1) / 8**0.5

model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for step in range(400):
    states = torch.randn(256, 8)
    skill = 1 + 5 * step / 400
    returns = skill * (states @ worth + 0.7 * torch.randn(256, 1))
    loss = nn.functional.mse_loss(model(states), returns)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(f"step {step}: loss {loss.item():.4f}")
