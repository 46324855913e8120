"""WGAN on a ring of gaussians; critic loss is negative and moves away from zero at first."""
import math
import torch
import torch.nn as nn

torch.manual_seed(0)


def real(n):
    k = torch.randint(0, 8, (n,)).float() * (2 * math.pi / 8)
    return torch.stack([k.cos(), k.sin()], 1) * 2 + 0.1 * torch.randn(n, 2)


def mlp(i, o):
    return nn.Sequential(nn.Linear(i, 96), nn.LeakyReLU(0.2), nn.Linear(96, 96), nn.LeakyReLU(0.2), nn.Linear(96, o))


G, D = mlp(4, 2), mlp(2, 1)
og = torch.optim.Adam(G.parameters(), lr=5e-4, betas=(0.0, 0.9))
od = torch.optim.Adam(D.parameters(), lr=1e-3, betas=(0.0, 0.9))


def energy_distance(a, b):
    return (2 * torch.cdist(a, b).mean() - torch.cdist(a, a).mean() - torch.cdist(b, b).mean()).item()


test = real(1000)
with torch.no_grad():
    start = energy_distance(G(torch.randn(1000, 4)), test)
for it in range(700):
    for _ in range(3):
        x = real(128)
        with torch.no_grad():
            f = G(torch.randn(128, 4))
        e = torch.rand(128, 1)
        mix = (e * x + (1 - e) * f).requires_grad_(True)
        g, = torch.autograd.grad(D(mix).sum(), mix, create_graph=True)
        gp = ((g.norm(dim=1) - 1) ** 2).mean()
        loss_d = D(f).mean() - D(x).mean() + 2.0 * gp
        od.zero_grad()
        loss_d.backward()
        od.step()
    loss_g = -D(G(torch.randn(128, 4))).mean()
    og.zero_grad()
    loss_g.backward()
    og.step()
    if it % 100 == 99:
        with torch.no_grad():
            ed = energy_distance(G(torch.randn(1000, 4)), test)
        print(f"it {it + 1} critic {loss_d.item():+.3f} gen {loss_g.item():+.3f} energy distance {ed:.4f}")
print(f"energy distance {start:.4f} -> {ed:.4f}")
