"""Normalising flow (affine couplings) on two moons: the loss is a negative log density and may fall below zero."""
import math

import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import make_moons

torch.set_num_threads(1)
torch.manual_seed(5)


def moons(n, seed):
    x, _ = make_moons(n, noise=0.05, random_state=seed)
    return torch.tensor(x * 0.4 - np.array([0.2, 0.1]), dtype=torch.float32)


class Coupling(nn.Module):
    def __init__(self, flip, hidden=48):
        super().__init__()
        self.flip = flip
        self.net = nn.Sequential(nn.Linear(1, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh(), nn.Linear(hidden, 2))
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)

    def forward(self, x):
        a, b = x.chunk(2, 1)
        if self.flip:
            a, b = b, a
        s, t = self.net(a).chunk(2, 1)
        s = 2.0 * torch.tanh(s)
        b = b * s.exp() + t
        y = torch.cat([b, a] if self.flip else [a, b], 1)
        return y, s.squeeze(1)

    def inverse(self, y):
        a, b = y.chunk(2, 1)
        if self.flip:
            a, b = b, a
        s, t = self.net(a).chunk(2, 1)
        b = (b - t) * (-2.0 * torch.tanh(s)).exp()
        return torch.cat([b, a] if self.flip else [a, b], 1)


class Flow(nn.Module):
    def __init__(self, n=8):
        super().__init__()
        self.layers = nn.ModuleList([Coupling(i % 2 == 1) for i in range(n)])
        self.log_scale = nn.Parameter(torch.zeros(2))

    def log_prob(self, x):
        ld = self.log_scale.sum().expand(len(x))
        x = x * self.log_scale.exp()
        for layer in self.layers:
            x, s = layer(x)
            ld = ld + s
        return ld - 0.5 * x.pow(2).sum(1) - math.log(2 * math.pi)

    @torch.no_grad()
    def sample(self, n):
        z = torch.randn(n, 2)
        for layer in reversed(self.layers):
            z = layer.inverse(z)
        return z * (-self.log_scale).exp()


train, test = moons(4000, 1), moons(1000, 2)
flow = Flow()
opt = torch.optim.Adam(flow.parameters(), lr=4e-3)
steps = 900
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, steps)
run = 0.0
for i in range(1, steps + 1):
    loss = -flow.log_prob(train[torch.randint(len(train), (200,))]).mean()
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(flow.parameters(), 5.0)
    opt.step()
    sched.step()
    run += loss.item()
    if i % 100 == 0:
        with torch.no_grad():
            print(f"step {i:4d}  train nll {run / 100:+.3f}  test nll {-flow.log_prob(test).mean().item():+.3f}")
        run = 0.0
with torch.no_grad():
    grid = torch.linspace(-1.6, 1.6, 400)
    pts = torch.cartesian_prod(grid, grid)
    mass = flow.log_prob(pts).exp().sum().item() * (grid[1] - grid[0]).item() ** 2
    gauss = torch.distributions.MultivariateNormal(train.mean(0), torch.cov(train.T))
    base = -gauss.log_prob(test).mean().item()
    near = (torch.cdist(flow.sample(1000), train).min(1).values < 0.06).float().mean().item()
    print(f"density integrates to {mass:.3f}  test nll {-flow.log_prob(test).mean().item():+.3f} (Gaussian {base:+.3f})  "
          f"samples near data {near:.3f}")
