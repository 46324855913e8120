# Small GAN on a ring of eight Gaussians. Losses of G and D hover around their balance and say little.
import math
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(0)
ang = torch.arange(8) * math.pi / 4
modes = 2 * torch.stack([ang.cos(), ang.sin()], 1)


def real(n):
    return modes[torch.randint(0, 8, (n,))] + 0.12 * torch.randn(n, 2)


def mlp(i, o):
    return nn.Sequential(nn.Linear(i, 96), nn.LeakyReLU(0.2), nn.Linear(96, 96), nn.LeakyReLU(0.2), nn.Linear(96, o))


G, D = mlp(8, 2), mlp(2, 1)
g_opt = torch.optim.Adam(G.parameters(), 1e-3, betas=(0.5, 0.99))
d_opt = torch.optim.Adam(D.parameters(), 1e-3, betas=(0.5, 0.99))
G_avg = mlp(8, 2)
G_avg.load_state_dict(G.state_dict())


def quality():
    with torch.no_grad():
        s = G_avg(torch.randn(2000, 8))
    d = torch.cdist(s, modes)
    near, which = d.min(1)
    good = near < 0.4
    cover = len(torch.unique(which[good]))
    return good.float().mean().item(), cover


for it in range(3500):
    x, z = real(128), torch.randn(128, 8)
    # discriminator, with a zero-centred gradient penalty on real points
    x.requires_grad_(True)
    dr = D(x)
    gp, = torch.autograd.grad(dr.sum(), x, create_graph=True)
    d_loss = F.softplus(-dr).mean() + F.softplus(D(G(z).detach())).mean() + 0.02 * gp.pow(2).sum(1).mean()
    d_opt.zero_grad()
    d_loss.backward()
    d_opt.step()
    # generator
    g_loss = F.softplus(-D(G(torch.randn(128, 8)))).mean()
    g_opt.zero_grad()
    g_loss.backward()
    g_opt.step()
    with torch.no_grad():
        for a, b in zip(G_avg.parameters(), G.parameters()):
            a.lerp_(b, 0.005)
    if (it + 1) % 500 == 0:
        q, c = quality()
        print(f"it {it + 1}: D {d_loss.item():.3f} G {g_loss.item():.3f}  samples near a mode {q:.3f}, modes {c}/8")
q, c = quality()
print(f"final: samples near a mode {q:.3f}, modes covered {c}/8")
