import math
import torch
from torch import nn, optim


def ring(n, radius):
    a = torch.rand(n) * 2 * math.pi
    return torch.stack([a.cos(), a.sin()], 1) * radius + 0.05 * torch.randn(n, 2)


class Critic(nn.Module):
    def __init__(self, bound=6.0):
        super().__init__()
        self.bound = bound
        self.f = nn.Sequential(nn.Linear(2, 48), nn.LeakyReLU(0.2), nn.Linear(48, 48), nn.LeakyReLU(0.2), nn.Linear(48, 1))

    def forward(self, x):
        return self.f(x).clamp(-self.bound, self.bound)


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(4, 48), nn.ReLU(), nn.Linear(48, 2))

    def forward(self, z):
        return self.f(z)


def penalty(critic, real, fake):
    mix = torch.rand(real.size(0), 1)
    x = (mix * real + (1 - mix) * fake).requires_grad_(True)
    g, = torch.autograd.grad(critic(x).sum(), x, create_graph=True)
    norm = (g ** 2).sum(dim=1).sqrt()
    return ((norm - 1) ** 2).mean()


class Trainer:
    def __init__(self):
        torch.manual_seed(2)
        self.g, self.c = Generator(), Critic()
        self.og = optim.Adam(self.g.parameters(), lr=5e-4, betas=(0.5, 0.9))
        self.oc = optim.Adam(self.c.parameters(), lr=1e-3, betas=(0.5, 0.9))

    def critic_step(self, radius):
        real = ring(64, radius)
        fake = self.g(torch.randn(64, 4)).detach()
        loss = self.c(fake).mean() - self.c(real).mean() + 10 * penalty(self.c, real, fake)
        self.oc.zero_grad()
        loss.backward()
        self.oc.step()
        return loss.item()

    def gen_step(self):
        loss = -self.c(self.g(torch.randn(64, 4))).mean()
        self.og.zero_grad()
        loss.backward()
        self.og.step()
        return loss.item()

    def run(self, iters=180):
        for it in range(iters):
            radius = 1.0 + it / 12
            for _ in range(2):
                c = self.critic_step(radius)
            g = self.gen_step()
            if it % 15 == 0:
                print(f"it {it} radius {radius:.2f} critic {c:.4f} gen {g:.4f}")


if __name__ == "__main__":
    Trainer().run()
