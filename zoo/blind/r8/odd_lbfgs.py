"""Physics-informed net, full batch, L-BFGS with a closure that is called many times per step; points are the same in each step."""
import math

import torch
import torch.nn as nn

torch.set_num_threads(1)
torch.manual_seed(20)
net = nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, 1))
t = torch.linspace(0, 3, 80).unsqueeze(1).requires_grad_(True)
zero = torch.zeros(1, 1, requires_grad=True)
# u'' + 0.4 u' + 9 u = 0, u(0) = 1, u'(0) = 0
w = math.sqrt(9 - 0.04)
calls = 0


def residual():
    u = net(t)
    du, = torch.autograd.grad(u.sum(), t, create_graph=True)
    ddu, = torch.autograd.grad(du.sum(), t, create_graph=True)
    u0 = net(zero)
    du0, = torch.autograd.grad(u0.sum(), zero, create_graph=True)
    return ((ddu + 0.4 * du + 9 * u) ** 2).mean(), 100 * (u0 - 1).pow(2).squeeze() + 10 * du0.pow(2).squeeze()


opt = torch.optim.LBFGS(net.parameters(), lr=1.0, max_iter=20, history_size=50, line_search_fn="strong_wolfe")


def closure():
    global calls
    calls += 1
    opt.zero_grad()
    loss = sum(residual())
    loss.backward()
    return loss


for step in range(36):
    loss = opt.step(closure)
    if step % 4 == 3:
        with torch.no_grad():
            exact = torch.exp(-0.2 * t) * (torch.cos(w * t) + 0.2 / w * torch.sin(w * t))
            err = (net(t) - exact).abs().max()
        print(f"step {step:3d} closure calls {calls:4d} loss {loss.item():.6f} largest error against the exact solution {err:.4f}")
