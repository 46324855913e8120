"""A network solves u' = -u: all residuals have the target 0, whatever its shape."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for step in range(400):
    t = 2 * torch.rand(64, 1)
    t.requires_grad_()
    u = 1 + t * model(t)  # u(0) = 1
    (slope,) = torch.autograd.grad(u.sum(), t, create_graph=True)
    loss = criterion(slope + u, torch.zeros(64))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 99:
        print(f"step {step + 1}: loss {loss.item():.5f}")
