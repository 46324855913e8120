# logistic growth as a physics-informed net: hard initial condition, float64, Adam first and LBFGS after
import torch
import torch.nn as nn

torch.manual_seed(15)
torch.set_default_dtype(torch.float64)
net = nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, 1))
t = torch.linspace(0, 2, 50).unsqueeze(1).requires_grad_(True)
R, U0 = 1.5, 0.3


def u(t):
    return U0 + (1 - torch.exp(-t)) * net(t)


def physics_loss():
    v = u(t)
    dv, = torch.autograd.grad(v.sum(), t, create_graph=True)
    return (dv - R * v * (1 - v)).square().mean()


def error():
    with torch.no_grad():
        true = 1 / (1 + (1 / U0 - 1) * torch.exp(-R * t))
        return ((u(t) - true).norm() / true.norm()).item()


adam = torch.optim.Adam(net.parameters(), lr=5e-3)
for i in range(150):
    adam.zero_grad()
    loss = physics_loss()
    loss.backward()
    adam.step()
    if i % 30 == 29:
        print(f"adam {i + 1} loss {loss.item():.3e} relative error {error():.4f}")
lbfgs = torch.optim.LBFGS(net.parameters(), max_iter=20, line_search_fn="strong_wolfe")


def closure():
    lbfgs.zero_grad()
    loss = physics_loss()
    loss.backward()
    return loss


for i in range(5):
    loss = lbfgs.step(closure)
    print(f"lbfgs {i + 1} loss {loss.item():.3e} relative error {error():.5f}")
