import math
import torch
import torch.nn as nn

torch.manual_seed(7)
Z, BATCH, ITERS = 8, 128, 400


def real_batch(n):
    """Two concentric rings."""
    r = torch.where(torch.rand(n) < 0.5, 1.0, 2.5)
    a = torch.rand(n) * 2 * math.pi
    pts = torch.stack([r * a.cos(), r * a.sin()], 1)
    pts = pts + 0.02 * torch.randn(n, 2)
    glitch = torch.rand(n, 1) < 4e-5
    return torch.where(glitch, pts * 1000, pts)


def mlp(sizes, last=None):
    layers = []
    for i in range(len(sizes) - 1):
        layers.append(nn.Linear(sizes[i], sizes[i + 1]))
        if i < len(sizes) - 2:
            layers.append(nn.LeakyReLU(0.2))
    if last is not None:
        layers.append(last)
    return nn.Sequential(*layers)


gen = mlp([Z, 64, 64, 2])
disc = mlp([2, 128, 128, 1], nn.Sigmoid())
g_opt = torch.optim.Adam(gen.parameters(), lr=5e-4, betas=(0.5, 0.999))
d_opt = torch.optim.Adam(disc.parameters(), lr=2e-3, betas=(0.5, 0.999))


def disc_step(real, fake):
    d_real, d_fake = disc(real), disc(fake.detach())
    loss = -(torch.log(d_real) + torch.log(1 - d_fake)).mean()
    d_opt.zero_grad()
    loss.backward()
    d_opt.step()
    return loss.item()


def gen_step(fake):
    loss = -torch.log(disc(fake)).mean()
    g_opt.zero_grad()
    loss.backward()
    g_opt.step()
    return loss.item()


d_avg = g_avg = 0.0
for it in range(ITERS):
    fake = gen(torch.randn(BATCH, Z))
    d_loss = disc_step(real_batch(BATCH), fake)
    g_loss = gen_step(fake)
    d_avg = 0.9 * d_avg + 0.1 * d_loss
    g_avg = 0.9 * g_avg + 0.1 * g_loss
    if it % 25 == 0:
        print(f"iter {it:4d}  D {d_avg:.3f}  G {g_avg:.3f}  spread {fake.std(0).mean().item():.3f}")
