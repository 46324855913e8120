"""Wasserstein GAN on a ring of Gaussians."""
import math

import torch
from torch import nn


def ring(n, g):
    k = torch.randint(0, 8, (n,), generator=g).float() * (2 * math.pi / 8)
    return torch.stack([k.cos(), k.sin()], 1) * 2 + 0.05 * torch.randn(n, 2, generator=g)


class Critic(nn.Module):
    bound = 0.08
    relax = 1.04

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(2, 48), nn.LeakyReLU(0.2),
            nn.Linear(48, 48), nn.LeakyReLU(0.2),
            nn.Linear(48, 1),
        )

    def forward(self, x):
        return self.body(x).squeeze(1)

    @torch.no_grad()
    def project(self):
        for p in self.parameters():
            p.clamp_(-Critic.bound, Critic.bound)

    @classmethod
    def anneal(cls):
        cls.bound = cls.bound * cls.relax


class Generator(nn.Module):
    def __init__(self, z=8):
        super().__init__()
        self.z = z
        self.body = nn.Sequential(
            nn.Linear(z, 48), nn.ReLU(),
            nn.Linear(48, 48), nn.ReLU(),
            nn.Linear(48, 2),
        )

    def forward(self, n):
        return self.body(torch.randn(n, self.z))


def main():
    torch.manual_seed(50)
    g = torch.Generator().manual_seed(50)
    critic, gen = Critic(), Generator()
    opt_c = torch.optim.RMSprop(critic.parameters(), lr=1e-2)
    opt_g = torch.optim.RMSprop(gen.parameters(), lr=1e-3)
    for it in range(200):
        for _ in range(2):
            real = ring(96, g)
            with torch.no_grad():
                fake = gen(96)
            c_loss = critic(fake).mean() - critic(real).mean()
            opt_c.zero_grad()
            c_loss.backward()
            opt_c.step()
            critic.project()
        g_loss = -critic(gen(96)).mean()
        opt_g.zero_grad()
        g_loss.backward()
        opt_g.step()
        Critic.anneal()
        if it % 10 == 0:
            print(f"it {it:4d} critic {c_loss.item():+.4f} generator {g_loss.item():+.4f}")


if __name__ == "__main__":
    main()
