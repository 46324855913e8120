"""Probabilistic forecast: mean and log-variance for four horizons, Gaussian likelihood."""
import numpy as np
import torch
from torch import nn

rng = np.random.default_rng(8)
torch.manual_seed(8)
n, lag, hor = 3000, 30, (1, 3, 6, 12)
t = np.arange(n)
s = np.sin(2 * np.pi * t / 12) + 0.5 * np.sin(2 * np.pi * t / 30) + 0.04 * rng.normal(size=n)
rows = range(lag, n - max(hor))
x = torch.tensor(np.stack([s[i - lag:i] for i in rows]), dtype=torch.float32)
y = torch.tensor(np.stack([[s[i - 1 + h] for h in hor] for i in rows]), dtype=torch.float32)
cut = 2300
net = nn.Sequential(nn.Linear(lag, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 2 * len(hor)))
opt = torch.optim.Adam(net.parameters(), lr=2e-3)


def nll(out, target):
    mean, logvar = out.chunk(2, dim=1)
    logvar = logvar.clamp(-8, 4)
    return 0.5 * (logvar + (target - mean) ** 2 / logvar.exp()).mean()


for epoch in range(12):
    perm = torch.randperm(cut)
    for b in perm.split(64):
        loss = nll(net(x[b]), y[b])
        opt.zero_grad()
        loss.backward()
        opt.step()
    with torch.no_grad():
        out = net(x[cut:])
        mean, logvar = out.chunk(2, 1)
        z = (y[cut:] - mean) / (0.5 * logvar).exp()
        print(f"{epoch:2d} train nll {loss.item():+.3f} val nll {nll(out, y[cut:]).item():+.3f} "
              f"mae {(y[cut:] - mean).abs().mean():.3f} inside 1 sigma {(z.abs() < 1).float().mean():.2f}")
