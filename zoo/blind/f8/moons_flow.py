"""Density of two moons with a stack of planar layers."""
import math

import torch
import torch.nn as nn


def two_moons(n, g):
    t = torch.rand(n, generator=g) * math.pi
    side = torch.rand(n, generator=g) < 0.5
    x = torch.where(side, t.cos(), 1 - t.cos())
    y = torch.where(side, t.sin(), 0.5 - t.sin())
    pts = torch.stack([x - 0.5, y - 0.25], 1) * 1.4
    return pts + 0.08 * torch.randn(n, 2, generator=g)


class Planar(nn.Module):
    def __init__(self, dim=2):
        super().__init__()
        self.u = nn.Parameter(torch.randn(dim) * 0.1)
        self.w = nn.Parameter(torch.randn(dim) * 0.5)
        self.b = nn.Parameter(torch.zeros(()))

    def forward(self, z):
        a = torch.tanh(z @ self.w + self.b)
        out = z + self.u * a.unsqueeze(1)
        psi = (1 - a.pow(2)).unsqueeze(1) * self.w
        det = 1 + psi @ self.u
        return out, torch.log(det)


class Flow(nn.Module):
    def __init__(self, depth=12):
        super().__init__()
        self.layers = nn.ModuleList(Planar() for _ in range(depth))
        self.loc = nn.Parameter(torch.zeros(2))
        self.logs = nn.Parameter(torch.zeros(2))

    def log_prob(self, x):
        total = x.new_zeros(len(x))
        for layer in self.layers:
            x, ld = layer(x)
            total = total + ld
        x = (x - self.loc) * self.logs.exp()
        base = -0.5 * x.pow(2).sum(1) - math.log(2 * math.pi)
        return base + total + self.logs.sum()


def run(steps=600, batch=256, lr=3e-2, seed=6):
    torch.manual_seed(seed)
    g = torch.Generator().manual_seed(seed)
    flow = Flow()
    opt = torch.optim.Adam(flow.parameters(), lr=lr)
    for step in range(steps):
        x = two_moons(batch, g)
        loss = -flow.log_prob(x).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 25 == 0:
            print(f"{step:4d} nll {loss.item():.4f}")
    return flow


if __name__ == "__main__":
    run()
