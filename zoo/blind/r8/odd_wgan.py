"""WGAN with gradient penalty on a ring of eight blobs: four critic steps per generator step, losses without a floor, of either sign."""
import math

import torch
import torch.nn as nn

torch.set_num_threads(1)
torch.manual_seed(9)


def real(n):
    k = torch.randint(0, 8, (n,)) * (2 * math.pi / 8)
    return torch.stack([k.cos(), k.sin()], 1) * 2 + 0.15 * torch.randn(n, 2)


def mlp(i, o):
    return nn.Sequential(nn.Linear(i, 64), nn.LeakyReLU(0.1), nn.Linear(64, 64), nn.LeakyReLU(0.1), nn.Linear(64, o))


G, D = mlp(4, 2), mlp(2, 1)
opt_g = torch.optim.Adam(G.parameters(), lr=2e-3, betas=(0.5, 0.9))
opt_d = torch.optim.Adam(D.parameters(), lr=4e-3, betas=(0.5, 0.9))
blobs = torch.tensor([[math.cos(a), math.sin(a)] for a in torch.arange(8) * (2 * math.pi / 8)]) * 2


def penalty(x, y):
    e = torch.rand(len(x), 1)
    z = (e * x + (1 - e) * y).requires_grad_(True)
    g, = torch.autograd.grad(D(z).sum(), z, create_graph=True)
    return ((g.norm(dim=1) - 1) ** 2).mean()


for step in range(1, 401):
    for _ in range(4):
        x = real(100)
        with torch.no_grad():
            fake = G(torch.randn(100, 4))
        loss_d = D(fake).mean() - D(x).mean() + 1.0 * penalty(x, fake)
        opt_d.zero_grad()
        loss_d.backward()
        opt_d.step()
    loss_g = -D(G(torch.randn(128, 4))).mean()
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()
    if step % 50 == 0:
        with torch.no_grad():
            s = G(torch.randn(2000, 4))
            dist, which = torch.cdist(s, blobs).min(1)
            share = torch.bincount(which[dist < 0.4], minlength=8) / 2000
        print(f"step {step:4d} critic {loss_d.item():+.3f} generator {loss_g.item():+.3f} "
              f"| near a blob {(dist < 0.4).float().mean():.3f} blobs hit {(share > 0.03).sum().item()}/8")
