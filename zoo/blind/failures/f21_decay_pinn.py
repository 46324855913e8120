"""Inverse problem: u'(t) = -sqrt(k) u(t), u(0) = 1. Recover k from noisy readings with a physics-informed net.
A short Adam phase, then a quasi-Newton polish."""
import torch

torch.manual_seed(6)
t_obs = torch.linspace(0, 4, 40).unsqueeze(1)
u_obs = torch.exp(-0.12 * t_obs) + 0.003 * torch.randn_like(t_obs)
t_col = torch.linspace(0, 4, 64).unsqueeze(1).requires_grad_(True)

net = torch.nn.Sequential(
    torch.nn.Linear(1, 20), torch.nn.Tanh(),
    torch.nn.Linear(20, 20), torch.nn.Tanh(),
    torch.nn.Linear(20, 1),
)
k = torch.nn.Parameter(torch.tensor(0.5))
everything = list(net.parameters()) + [k]


def physics():
    u = net(t_col)
    du, = torch.autograd.grad(u.sum(), t_col, create_graph=True)
    return (du + torch.sqrt(k) * u).pow(2).mean()


def objective():
    return (net(t_obs) - u_obs).pow(2).mean() * 10 + physics()


adam = torch.optim.Adam(everything, lr=1e-3)
for it in range(120):
    adam.zero_grad()
    loss = objective()
    loss.backward()
    adam.step()
    if it % 15 == 0:
        print(f"adam  {it:3d} loss {loss.item():.5f} k {k.item():.4f}")

lbfgs = torch.optim.LBFGS(everything, lr=1.0, max_iter=4, history_size=10)


def closure():
    lbfgs.zero_grad()
    value = objective()
    value.backward()
    return value


for it in range(25):
    loss = lbfgs.step(closure)
    print(f"lbfgs {it:3d} loss {loss.item():.5f} k {k.item():.4f}")
