"""Physics-informed net for a damped wave around a point antenna (one dimension)."""
import math

import torch
import torch.nn as nn

torch.manual_seed(45)
torch.set_num_threads(1)

L = 3.0
STEPS = 420


class Field(nn.Module):
    """u(x) = envelope(x) * (1 + network(x)), the wavenumber is fitted too"""

    def __init__(self, width=40):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(),
                                 nn.Linear(width, 1))
        self.k = nn.Parameter(torch.tensor(1.6))

    def envelope(self, x):
        kx = self.k * x
        return torch.where(x == 0, torch.ones_like(x), torch.sin(kx) / kx)

    def forward(self, x):
        return self.envelope(x) * (1.0 + self.net(x))


def residual(model, x):
    x = x.requires_grad_(True)
    u = model(x)
    (du,) = torch.autograd.grad(u.sum(), x, create_graph=True)
    (ddu,) = torch.autograd.grad(du.sum(), x, create_graph=True)
    return ddu + 4.0 * u - 0.3 * torch.cos(x)


def boundary(model):
    ends = torch.tensor([[-L], [L]])
    return ((model(ends) - 0.1) ** 2).mean()


def collocation(step, pool):
    fresh = (torch.rand(200, 1) * 2 - 1) * L
    return torch.cat([fresh, pool]) if pool is not None else fresh


def refine(model, n=61, keep=40):
    """keep the points of a regular grid where the residual is worst"""
    grid = 2 * L * torch.arange(n).view(-1, 1) / (n - 1) - L
    shifted = grid + 1e-3
    worst = residual(model, shifted).detach().abs().squeeze(1).topk(keep).indices
    return grid[worst]


def main():
    model = Field()
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    pool = None
    for step in range(STEPS):
        if step == 180:
            pool = refine(model)
            print(f"step {step}: added {len(pool)} grid points")
        x = collocation(step, pool)
        r = residual(model, x.clone())
        loss = (r ** 2).mean() + 5.0 * boundary(model)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 20 == 0:
            print(f"step {step} loss {loss.item():.5f} k {model.k.item():.4f} "
                  f"|k-2| {abs(model.k.item() - 2):.4f} pi/L {math.pi / L:.3f}")


if __name__ == "__main__":
    main()
