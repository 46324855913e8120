import math
import torch
import torch.nn as nn

torch.manual_seed(5)
LATENT, BATCH, STEPS = 4, 96, 420


class Ring:
    """Points on a circle, with a little thickness."""

    def __init__(self, radius=2.0, std=0.1):
        self.radius, self.std = radius, std

    def sample(self, n):
        angle = 2 * math.pi * torch.rand(n)
        r = self.radius + self.std * torch.randn(n)
        return torch.stack([r * angle.cos(), r * angle.sin()], 1)

    def report(self, pts):
        good = (pts.norm(dim=1) - self.radius).abs() < 3 * self.std
        sector = ((torch.atan2(pts[:, 1], pts[:, 0]) + math.pi) / (2 * math.pi) * 12).long().clamp(0, 11)
        hit = torch.bincount(sector[good], minlength=12)
        return int((hit > 0.01 * len(pts)).sum()), good.float().mean().item()


def mlp(i, o):
    return nn.Sequential(nn.Linear(i, 64), nn.LeakyReLU(0.2), nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Linear(64, o))


ring = Ring()
scale = 1.25 * ring.radius
G = nn.Sequential(mlp(LATENT, 2), nn.Tanh())
D = mlp(2, 1)
opt_g = torch.optim.Adam(G.parameters(), lr=2e-3, betas=(0.5, 0.9))
opt_d = torch.optim.Adam(D.parameters(), lr=4e-3, betas=(0.5, 0.9))
bce = nn.BCEWithLogitsLoss()
ones, zeros = torch.ones(BATCH, 1), torch.zeros(BATCH, 1)
eval_z = torch.randn(2000, LATENT)

for step in range(STEPS):
    # discriminator
    real = ring.sample(BATCH) / scale
    z = torch.randn(BATCH, LATENT)
    fake = G(z)
    loss_d = bce(D(real), ones) + bce(D(fake.detach()), zeros)
    opt_d.zero_grad()
    loss_d.backward()
    opt_d.step()

    # generator
    z = torch.randn(BATCH, LATENT)
    fake = G(z)
    loss_g = bce(D(fake), ones)
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()

    if step % 60 == 59:
        with torch.no_grad():
            sectors, good = ring.report(G(eval_z) * scale)
        print(f"step {step + 1}: D {loss_d.item():.3f} G {loss_g.item():.3f}  sectors {sectors}/12  points on the ring {good:.2f}")
