# physics-informed net for  u'' = f  on [-1, 1],  u(-1) = a, u(1) = b
import math
import torch
import torch.nn as nn

torch.manual_seed(2)


class PINN(nn.Module):
    def __init__(self, width=32, depth=2):
        super().__init__()
        layers, d = [], 1
        for _ in range(depth):
            layers += [nn.Linear(d, width), nn.Tanh()]
            d = width
        layers.append(nn.Linear(d, 1))
        self.net = nn.Sequential(*layers)

    def forward(self, x):
        return self.net(x)


def exact(x):
    return torch.sin(math.pi * x) + 0.5 * x


def source(x):
    return -math.pi ** 2 * torch.sin(math.pi * x)


def derivative(u, x):
    return torch.autograd.grad(u, x, torch.ones_like(u), create_graph=True)[0]


def residual(model, x):
    x = x.requires_grad_(True)
    u = model(x)
    du = derivative(u, x)
    d2u = derivative(du, x)
    return d2u - source(x.detach())


def collocation(n):
    return 2 * torch.rand(n, 1) - 1


model = PINN()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=100, gamma=0.5)
xb = torch.tensor([[-1.0], [1.0]])
ub = exact(xb)
xt = torch.linspace(-1, 1, 201).unsqueeze(1)

for step in range(1, 401):
    optimizer.zero_grad()
    pde = residual(model, collocation(50)).pow(2).mean()
    bc = (model(xb) - ub).pow(2).mean()
    loss = 0.1 * pde + 10.0 * bc
    loss.backward()
    optimizer.step()
    scheduler.step()
    if step % 100 == 0:
        with torch.no_grad():
            err = (model(xt) - exact(xt)).norm() / exact(xt).norm()
        print(f"step {step}: loss {loss.item():.4f} (pde {pde.item():.4f}, bc {bc.item():.5f}) relative L2 error {err:.4f}")
