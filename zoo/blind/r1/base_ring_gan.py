import math
import torch
import torch.nn as nn

torch.manual_seed(8)
K, Z, BATCH, STEPS = 8, 8, 128, 500


def real_batch(n):
    k = torch.randint(0, K, (n,)).float() * (2 * math.pi / K)
    return 2 * torch.stack([k.cos(), k.sin()], 1) + 0.12 * torch.randn(n, 2)


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(Z, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))

    def forward(self, z):
        return self.net(z)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 64), nn.LeakyReLU(0.2), nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1))

    def forward(self, x):
        return self.net(x)


def sample_z(n):
    return torch.randn(n, Z)


def main():
    G, D = Generator(), Discriminator()
    opt_g = torch.optim.Adam(G.parameters(), lr=2e-3, betas=(0.5, 0.99))
    opt_d = torch.optim.Adam(D.parameters(), lr=4e-3, betas=(0.5, 0.99))
    bce = nn.BCEWithLogitsLoss()
    ones, zeros = torch.ones(BATCH, 1), torch.zeros(BATCH, 1)
    for step in range(STEPS):
        # discriminator
        real = real_batch(BATCH)
        fake = G(sample_z(BATCH)).detach()
        d_loss = bce(D(real), ones * 0.9) + bce(D(fake), zeros)
        opt_d.zero_grad()
        d_loss.backward()
        opt_d.step()
        # generator
        fake = G(sample_z(BATCH))
        g_loss = bce(D(fake), ones)
        opt_g.zero_grad()
        g_loss.backward()
        opt_g.step()
        if step % 100 == 0 or step == STEPS - 1:
            print(f"step {step:4d}  D {d_loss.item():.3f}  G {g_loss.item():.3f}")
    with torch.no_grad():
        s = G(sample_z(1000))
    ang = torch.arange(K) * (2 * math.pi / K)
    centres = 2 * torch.stack([ang.cos(), ang.sin()], 1)
    dist, near = torch.cdist(s, centres).min(1)
    good = dist < 0.5
    print(f"mean distance to nearest mode {dist.mean():.3f}, share on a mode {good.float().mean():.2f}, modes hit {len(near[good].unique())}/{K}")


if __name__ == "__main__":
    main()
