"""Physics-informed network: recover diffusivity and field of a heated rod."""
import math

import torch
import torch.nn as nn


class Rod(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(2, width), nn.Tanh(),
            nn.Linear(width, width), nn.Tanh(),
            nn.Linear(width, 1),
        )
        self.kappa = nn.Parameter(torch.tensor(0.30))

    def field(self, x, t):
        scale = torch.sqrt(self.kappa)
        z = torch.stack([x / scale * 0.3, t], -1)
        return torch.sin(math.pi * x) * self.net(z).squeeze(-1)


def residual(model, x, t):
    x = x.requires_grad_(True)
    t = t.requires_grad_(True)
    u = model.field(x, t)
    ones = torch.ones_like(u)
    u_t, u_x = torch.autograd.grad(u, (t, x), ones, create_graph=True)
    (u_xx,) = torch.autograd.grad(u_x, x, ones, create_graph=True)
    return u_t - model.kappa * u_xx


def measured(x, t, kappa):
    return torch.exp(-kappa * math.pi ** 2 * t) * torch.sin(math.pi * x)


def main():
    torch.manual_seed(12)
    model = Rod()
    true_kappa = 0.002
    opt = torch.optim.Adam([
        {"params": model.net.parameters(), "lr": 3e-3},
        {"params": [model.kappa], "lr": 3e-3},
    ])
    for step in range(500):
        xs, ts = torch.rand(64), torch.rand(64)
        xd, td = torch.rand(64), torch.rand(64)
        r = residual(model, xs, ts)
        obs = measured(xd, td, true_kappa) + 0.02 * torch.randn(64)
        data = (model.field(xd, td) - obs).pow(2).mean()
        phys = r.pow(2).mean()
        loss = 10 * data + phys
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 20 == 0:
            print(f"step {step:4d} data {data.item():.5f} phys {phys.item():.5f} "
                  f"kappa {model.kappa.item():.4f}")


if __name__ == "__main__":
    main()
