"""RealNVP on two moons. The objective is a negative log-likelihood in 2-D plus a tight third
coordinate, so the loss goes well below zero."""
import math
import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import make_moons

torch.set_num_threads(1)
torch.manual_seed(0)


class Coupling(nn.Module):
    def __init__(self, dim, flip):
        super().__init__()
        m = torch.arange(dim) % 2
        self.register_buffer("m", (1 - m if flip else m).float())
        self.s = nn.Sequential(nn.Linear(dim, 48), nn.Tanh(), nn.Linear(48, dim), nn.Tanh())
        self.t = nn.Sequential(nn.Linear(dim, 48), nn.ReLU(), nn.Linear(48, dim))
        self.scale = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        keep = x * self.m
        s = self.s(keep) * (1 - self.m) * self.scale
        t = self.t(keep) * (1 - self.m)
        return keep + (1 - self.m) * (x * s.exp() + t), s.sum(1)


class Flow(nn.Module):
    def __init__(self, dim=3, n=8):
        super().__init__()
        self.layers = nn.ModuleList([Coupling(dim, i % 2) for i in range(n)])

    def log_prob(self, x):
        logdet = 0
        for layer in self.layers:
            x, ld = layer(x)
            logdet = logdet + ld
        return -0.5 * (x ** 2).sum(1) - 1.5 * math.log(2 * math.pi) + logdet


def data(n, seed):
    x, _ = make_moons(n, noise=0.05, random_state=seed)
    z = 0.3 * x[:, :1] * x[:, 1:] + 0.01 * np.random.default_rng(seed).normal(size=(n, 1))
    return torch.tensor(np.concatenate([x, z], 1), dtype=torch.float32)


train, val = data(8000, 0), data(2000, 1)
flow = Flow()
opt = torch.optim.Adam(flow.parameters(), 2e-3)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 1200)
for step in range(1200):
    x = train[torch.randint(0, len(train), (256,))]
    loss = -flow.log_prob(x).mean()
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(flow.parameters(), 5.0)
    opt.step()
    sched.step()
    if step % 150 == 0:
        with torch.no_grad():
            print(f"step {step} nll {loss.item():.3f} val nll {-flow.log_prob(val).mean():.3f}")
with torch.no_grad():
    nll = -flow.log_prob(val).mean().item()
mu, cov = train.mean(0), torch.cov(train.T)
gauss = -torch.distributions.MultivariateNormal(mu, cov).log_prob(val).mean().item()
print(f"val nll of the flow {nll:.3f}; of a fitted Gaussian {gauss:.3f}")
