"""Physics-informed network: no data, only the residual of u'' + u = 0 with u(0)=0, u'(0)=1, solved by L-BFGS."""
import math
import torch
import torch.nn as nn

torch.manual_seed(5)
torch.set_num_threads(1)
torch.set_default_dtype(torch.float64)

net = nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, 1))
END = 2 * math.pi
points = torch.linspace(0, END, 80)[:, None].requires_grad_(True)
zero = torch.zeros(1, 1, requires_grad=True)


def scale(t):
    return 2 * t / END - 1


def derivative(y, x):
    return torch.autograd.grad(y.sum(), x, create_graph=True)[0]


def residual():
    u = net(scale(points))
    du = derivative(u, points)
    ddu = derivative(du, points)
    ode = (ddu + u).pow(2).mean()
    u0 = net(scale(zero))
    du0 = derivative(u0, zero)
    start = u0.pow(2).sum() + (du0 - 1).pow(2).sum()
    return ode + 5 * start, ode, start


opt = torch.optim.LBFGS(net.parameters(), lr=1.0, max_iter=25, history_size=30, line_search_fn="strong_wolfe")


def closure():
    opt.zero_grad()
    loss, _, _ = residual()
    loss.backward()
    return loss


test_t = torch.linspace(0, END, 333)[:, None]
for outer in range(14):
    # the same collocation points in every call: L-BFGS needs a fixed objective
    opt.step(closure)
    loss, ode, start = residual()
    with torch.no_grad():
        err = (net(scale(test_t)) - test_t.sin()).abs().max().item()
    print(f"outer {outer:2d} loss {loss.item():.3e} ode {ode.item():.3e} start {start.item():.3e} max error {err:.3e}")

with torch.no_grad():
    err = (net(scale(test_t)) - test_t.sin()).abs()
print(f"solution error max {err.max().item():.2e} mean {err.mean().item():.2e}")
print("solved" if err.max().item() < 0.02 else "not solved")
