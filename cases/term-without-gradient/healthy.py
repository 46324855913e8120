"""A network is fitted to a differential equation, u' = cos(x) with u(0) = 0."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for step in range(400):
    x = (3 * torch.rand(64, 1)).requires_grad_()
    u = model(x)
    du = torch.autograd.grad(u.sum(), x, create_graph=True)[0]
    equation = (du - x.detach().cos()).square().mean()
    boundary = model(torch.zeros(1, 1)).square().mean()
    loss = equation + 10 * boundary
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 99:
        print(f"step {step + 1}: equation {equation.item():.4f} boundary {boundary.item():.6f}")
