"""Physics-informed network for u'' = -pi^2 sin(pi x), trained full-batch with LBFGS: 25 outer steps, no data set, no validation.
Goal: maximum error against the exact solution sin(pi x) below 1e-2."""
import math
import torch
import torch.nn as nn

torch.set_num_threads(1)
torch.manual_seed(12)
net = nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, 1))
x = torch.linspace(-1, 1, 128).unsqueeze(1).requires_grad_()
ends = torch.tensor([[-1.0], [1.0]])
rhs = -(math.pi ** 2) * torch.sin(math.pi * x.detach())
opt = torch.optim.LBFGS(net.parameters(), lr=1.0, max_iter=20, history_size=30, line_search_fn="strong_wolfe")
calls = 0


def closure():
    global calls
    calls += 1
    opt.zero_grad()
    u = net(x)
    du = torch.autograd.grad(u.sum(), x, create_graph=True)[0]
    d2u = torch.autograd.grad(du.sum(), x, create_graph=True)[0]
    loss = ((d2u - rhs) ** 2).mean() + 50 * (net(ends) ** 2).mean()
    loss.backward()
    return loss


grid = torch.linspace(-1, 1, 500).unsqueeze(1)
for outer in range(1, 26):
    loss = opt.step(closure)
    if outer % 3 == 1:
        with torch.no_grad():
            err = (net(grid) - torch.sin(math.pi * grid)).abs().max().item()
        print(f"outer {outer} closure calls {calls} residual {loss.item():.5f} max error {err:.5f}")
