import torch
import torch.nn as nn
import torch.nn.functional as F


def blobs(n, gen):
    yy, xx = torch.meshgrid(torch.arange(10.), torch.arange(10.), indexing="ij")
    c = torch.rand(n, 2, generator=gen) * 6 + 2
    w = torch.rand(n, 1, 1, generator=gen) * 1.5 + 0.8
    d = (yy - c[:, :1, None]) ** 2 + (xx - c[:, 1:, None]) ** 2
    return torch.exp(-d / (2 * w ** 2)).view(n, 100)


class VAE(nn.Module):
    def __init__(self, z=8):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(100, 64), nn.ReLU(), nn.Linear(64, 2 * z))
        self.dec = nn.Sequential(nn.Linear(z, 64), nn.ReLU(), nn.Linear(64, 100))

    def forward(self, x):
        mu, logvar = self.enc(x).chunk(2, -1)
        z = mu + torch.randn_like(mu) * torch.exp(0.5 * logvar)
        return self.dec(z), mu, logvar


def train(steps=420):
    torch.manual_seed(7)
    gen = torch.Generator().manual_seed(1)
    X = blobs(4000, gen)
    m = VAE()
    opt = torch.optim.SGD(m.parameters(), lr=0.01, momentum=0.9)
    beta = 0.01
    for s in range(steps):
        x = X[torch.randint(0, len(X), (64,), generator=gen)]
        rec, mu, logvar = m(x)
        recon = F.mse_loss(rec, x, reduction="none").sum(1).mean()
        kl = (-0.5 * (1 + logvar - mu ** 2 - logvar.exp())).sum(1).mean()
        loss = recon + beta * kl
        opt.zero_grad()
        loss.backward()
        opt.step()
        beta *= 1.035
        if s % 20 == 0:
            print(f"step {s} recon {recon.item():.4f} kl {kl.item():.4f} beta {beta:.3f}")


train()
