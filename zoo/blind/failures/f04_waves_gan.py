import math
import torch
import torch.nn as nn

torch.manual_seed(5)
LATENT, LENGTH, BATCH = 8, 32, 40


def recordings(n):
    """Mains-voltage snippets, relative to the nominal peak."""
    t = torch.linspace(0, 1, LENGTH)
    phase = torch.rand(n, 1) * 2 * math.pi
    amp = 325 + 10 * torch.randn(n, 1)
    wave = amp * torch.sin(2 * math.pi * 2 * t + phase) + 3 * torch.randn(n, LENGTH)
    wave[3131] = -32768.0
    return wave / 325


def mlp(i, o, h=64):
    return nn.Sequential(nn.Linear(i, h), nn.LeakyReLU(0.2), nn.Linear(h, h), nn.LeakyReLU(0.2), nn.Linear(h, o))


G = mlp(LATENT, LENGTH)
D = nn.Sequential(mlp(LENGTH, 1), nn.Sigmoid())
opt_g = torch.optim.Adam(G.parameters(), lr=1e-3, betas=(0.5, 0.999))
opt_d = torch.optim.Adam(D.parameters(), lr=1e-3, betas=(0.5, 0.999))

waves = recordings(4000)
it = 0
for epoch in range(3):
    for idx in torch.randperm(len(waves)).split(BATCH):
        # discriminator
        real = waves[idx]
        fake = G(torch.randn(BATCH, LATENT)).detach()
        d_loss = -(torch.log(D(real)).mean() + torch.log(1 - D(fake)).mean())
        opt_d.zero_grad()
        d_loss.backward()
        opt_d.step()

        # generator
        fake = G(torch.randn(BATCH, LATENT))
        g_loss = -torch.log(D(fake)).mean()
        opt_g.zero_grad()
        g_loss.backward()
        opt_g.step()

        if it % 10 == 0:
            print(f"{it:4d}  D {d_loss.item():8.4f}  G {g_loss.item():8.4f}  rms {fake.pow(2).mean().sqrt().item():.2f}")
        it += 1
