"""Wasserstein domain alignment: a critic with gradient penalty (5 critic steps per feature step), labels only in the source."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(13)
rng = np.random.default_rng(13)
C, D = 3, 10
mu = rng.normal(0, 1.2, (C, 6))
habit = rng.normal(0, 1.5, (C, 4))
mixing = np.linalg.qr(rng.normal(size=(D, D)))[0]


def domain(n, target):
    y = rng.integers(0, C, n)
    z = mu[y] + 0.7 * rng.normal(size=(n, 6))
    extra = rng.normal(size=(n, 4)) * 1.3 + 1.0 if target else habit[y] + 0.5 * rng.normal(size=(n, 4))
    x = np.concatenate([z, extra], axis=1) @ mixing
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y)


xs, ys = domain(1500, False)
xt, _ = domain(1500, True)
xq, yq = domain(1000, True)

feat = nn.Sequential(nn.Linear(D, 32), nn.ReLU(), nn.Linear(32, 8))
clf = nn.Linear(8, C)
critic = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 1))
opt_f = torch.optim.Adam([*feat.parameters(), *clf.parameters()], lr=1e-3)
opt_c = torch.optim.Adam(critic.parameters(), lr=2e-3, betas=(0.5, 0.9))


def penalty(a, b):
    e = torch.rand(len(a), 1)
    mid = (e * a + (1 - e) * b).requires_grad_()
    g, = torch.autograd.grad(critic(mid).sum(), mid, create_graph=True)
    return ((g.norm(dim=1) - 1) ** 2).mean()


def target_acc():
    with torch.no_grad():
        return (clf(feat(xq)).argmax(1) == yq).float().mean().item()


ITER = 360
for it in range(1, ITER + 1):
    i, j = torch.randint(0, 1500, (64,)), torch.randint(0, 1500, (64,))
    if it > 60:
        with torch.no_grad():
            fs, ft = feat(xs[i]), feat(xt[j])
        for _ in range(5):
            w = critic(fs).mean() - critic(ft).mean()
            loss_c = -w + 10.0 * penalty(fs, ft)
            opt_c.zero_grad()
            loss_c.backward()
            opt_c.step()
    fs, ft = feat(xs[i]), feat(xt[j])
    loss_y = F.cross_entropy(clf(fs), ys[i])
    gap = critic(fs).mean() - critic(ft).mean()
    loss = loss_y + (1.0 * gap if it > 60 else 0.0)
    opt_f.zero_grad()
    loss.backward()
    opt_f.step()
    if it % 60 == 0:
        extra = f"critic loss {loss_c.item():.3f} distance {gap.item():.3f} " if it > 60 else "(warm-up, no alignment) "
        print(f"it {it} label {loss_y.item():.4f} {extra}target acc {target_acc():.4f}")
