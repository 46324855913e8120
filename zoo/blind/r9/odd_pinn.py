"""Physics-informed network for u'' + 9u = 0 with u(0)=1, u'(0)=0 in float64: Adam, then L-BFGS."""
import torch
import torch.nn as nn

torch.set_num_threads(1)
torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
net = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
grid = torch.linspace(0, 3, 301).unsqueeze(1)
exact = torch.cos(3 * grid)


def terms(t):
    t = t.clone().requires_grad_(True)
    u = net(t)
    du = torch.autograd.grad(u.sum(), t, create_graph=True)[0]
    ddu = torch.autograd.grad(du.sum(), t, create_graph=True)[0]
    pde = ((ddu + 9 * u) ** 2 * torch.exp(-0.5 * t.detach())).mean()
    t0 = torch.zeros(1, 1, requires_grad=True)
    u0 = net(t0)
    du0 = torch.autograd.grad(u0.sum(), t0, create_graph=True)[0]
    return pde, ((u0 - 1) ** 2 + du0 ** 2).sum()


def rel():
    with torch.no_grad():
        return ((net(grid) - exact).norm() / exact.norm()).item()


opt = torch.optim.Adam(net.parameters(), lr=3e-3)
for step in range(1, 1501):
    pde, ic = terms(3 * torch.rand(64, 1))
    loss = pde + 50 * ic
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 150 == 0:
        print(f"adam {step:5d} loss {loss.item():.4e} pde {pde.item():.3e} ic {ic.item():.3e} rel. error {rel():.4f}")

lb = torch.optim.LBFGS(net.parameters(), lr=1.0, max_iter=100, history_size=30, line_search_fn="strong_wolfe",
                       tolerance_grad=1e-9, tolerance_change=1e-12)
pts = torch.linspace(0, 3, 128).unsqueeze(1)


def closure():
    lb.zero_grad()
    pde, ic = terms(pts)
    loss = pde + 50 * ic
    loss.backward()
    return loss


for r in range(6):
    loss = lb.step(closure)
    print(f"lbfgs {r} loss {loss.item():.4e} rel. error {rel():.5f}")
