"""Mixup on tabular sensor rows, Beta(0.4, 0.4)."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(37)
np.random.seed(37)
M = torch.randn(4, 18) * 0.9


def make(n):
    y = torch.randint(0, 4, (n,))
    x = M[y] * torch.sign(torch.randn(n, 1)) + torch.randn(n, 18)
    return x, y


(xt, yt), (xv, yv) = make(3200), make(800)
net = nn.Sequential(nn.Linear(18, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))
opt = torch.optim.Adam(net.parameters(), lr=1.5e-3)
loader = DataLoader(TensorDataset(xt, yt), batch_size=64, shuffle=True)
for ep in range(6):
    net.train()
    tot = 0.0
    for x, y in loader:
        lam = np.random.beta(0.4, 0.4)
        j = torch.randperm(len(x))
        out = net(lam * x + (1 - lam) * x[j])
        loss = lam * F.cross_entropy(out, y) + (1 - lam) * F.cross_entropy(out, y[j])
        opt.zero_grad()
        loss.backward()
        opt.step()
        tot += loss.item()
    net.eval()
    with torch.no_grad():
        ot, ov = net(xt), net(xv)
    print(f"ep {ep} mixed loss {tot / len(loader):.3f} | clean train {F.cross_entropy(ot, yt):.3f} {(ot.argmax(1) == yt).float().mean():.3f} | val {F.cross_entropy(ov, yv):.3f} {(ov.argmax(1) == yv).float().mean():.3f}")
