import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
rng = np.random.default_rng(0)


def patterns(n):
    """six kinds of 12x12 texture"""
    y = rng.integers(0, 6, n)
    yy, xx = np.mgrid[0:12, 0:12]
    waves = [yy, xx, yy + xx, yy - xx, np.hypot(yy - 5.5, xx - 5.5), yy * xx / 6]
    x = np.stack([np.sin(waves[k] * rng.uniform(1.1, 1.4) + rng.uniform(0, 6)) for k in y])
    return torch.tensor(x + 0.3 * rng.standard_normal(x.shape), dtype=torch.float32)[:, None], torch.tensor(y)


class Res(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.f = nn.Sequential(nn.Conv2d(c, c, 3, padding=1), nn.GroupNorm(4, c), nn.ReLU(), nn.Conv2d(c, c, 3, padding=1), nn.GroupNorm(4, c))

    def forward(self, x):
        return F.relu(x + self.f(x))


net = nn.Sequential(nn.Conv2d(1, 16, 3, 2, 1), nn.ReLU(), Res(16), Res(16), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 6))
xtr, ytr = patterns(900)
xva, yva = patterns(300)
opt = torch.optim.AdamW(net.parameters(), lr=6e-3, weight_decay=0.02)
beta = torch.distributions.Beta(1.0, 1.0)

for epoch in range(12):
    net.train()
    tot = 0
    for b in torch.randperm(900).split(60):
        lam = beta.sample()
        other = b[torch.randperm(len(b))]
        x = lam * xtr[b] + (1 - lam) * xtr[other]
        out = net(x)
        loss = lam * F.cross_entropy(out, ytr[b], label_smoothing=0.1) + (1 - lam) * F.cross_entropy(out, ytr[other], label_smoothing=0.1)
        opt.zero_grad()
        loss.backward()
        opt.step()
        tot += loss.item() / 15
    net.eval()
    with torch.no_grad():
        out = net(xva)
    print(f"epoch {epoch} mixed train loss {tot:.3f} val loss {F.cross_entropy(out, yva):.3f} val acc {(out.argmax(1) == yva).float().mean():.3f}")
