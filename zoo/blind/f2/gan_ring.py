# toy GAN on a ring of gaussians; D outputs P(fake)
import torch
import torch.nn as nn
import math

torch.manual_seed(7)
bs = 64
zdim = 8


def mlp(i, h, o):
    return nn.Sequential(nn.Linear(i, h), nn.LeakyReLU(0.2), nn.Linear(h, h), nn.LeakyReLU(0.2), nn.Linear(h, o))


G = mlp(zdim, 32, 2)
D = nn.Sequential(mlp(2, 96, 1), nn.Sigmoid())
opt_g = torch.optim.Adam(G.parameters(), lr=5e-5, betas=(0.5, 0.999))
opt_d = torch.optim.Adam(D.parameters(), lr=1e-2, betas=(0.5, 0.9))


def real_batch():
    k = torch.randint(0, 8, (bs,))
    a = k * 2 * math.pi / 8
    return 4 * torch.stack([a.cos(), a.sin()], 1) + 0.05 * torch.randn(bs, 2)


for it in range(200):
    real = real_batch()
    fake = G(torch.randn(bs, zdim)).detach()
    p_real, p_fake = D(real), D(fake)
    d_loss = -torch.log(1 - p_real + 1e-8).mean() - torch.log(p_fake + 1e-8).mean()
    opt_d.zero_grad()
    d_loss.backward()
    opt_d.step()

    p = D(G(torch.randn(bs, zdim)))
    g_loss = -torch.log(1 - p).mean()
    opt_g.zero_grad()
    g_loss.backward()
    opt_g.step()

    if it % 20 == 0:
        print(f"[{it}] d {d_loss.item():.4f} g {g_loss.item():.4f}")
