import math
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(21)
SIZE, LATENT = 14, 4


def blobs(n):
    """one bright soft ellipse per picture: position, width and height vary"""
    g = torch.Generator().manual_seed(n)
    cy, cx = (4 + 6 * torch.rand(2, n, 1, 1, generator=g)).unbind(0)
    sy, sx = (1.0 + 1.5 * torch.rand(2, n, 1, 1, generator=g)).unbind(0)
    grid = torch.arange(SIZE).float()
    r = ((grid[:, None] - cy) / sy) ** 2 + ((grid[None, :] - cx) / sx) ** 2
    return torch.exp(-0.5 * r ** 2).flatten(1)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(SIZE * SIZE, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU())
        self.mu = nn.Linear(64, LATENT)
        self.logvar = nn.Linear(64, LATENT)

    def forward(self, x):
        h = self.body(x)
        return self.mu(h), self.logvar(h)


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(LATENT, 64), nn.ReLU(), nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, SIZE * SIZE))

    def forward(self, z):
        return self.body(z)


def sample_latent(mu, logvar):
    std = torch.exp(0.5 * logvar)
    eps = torch.randn_like(std)
    return mu + eps * std


def terms(logits, x, mu, logvar):
    rec = F.binary_cross_entropy_with_logits(logits, x, reduction="none").sum(dim=1).mean()
    kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(dim=1).mean()
    return rec, kl


def nearest(samples, reference):
    return torch.cdist(samples, reference).min(dim=1).values.mean().item()


train_x, test_x = blobs(2000), blobs(501)
enc, dec = Encoder(), Decoder()
optimizer = torch.optim.Adam(list(enc.parameters()) + list(dec.parameters()), lr=3e-3)
params = sum(p.numel() for m in (enc, dec) for p in m.parameters())
print(f"{params} parameters, {len(train_x)} pictures")

for epoch in range(18):
    enc.train(), dec.train()
    run_rec = run_kl = 0.0
    batches = torch.randperm(len(train_x)).split(100)
    for b in batches:
        x = train_x[b]
        mu, logvar = enc(x)
        logits = dec(sample_latent(mu, logvar))
        rec, kl = terms(logits, x, mu, logvar)
        loss = rec + min(1.0, (epoch + 1) / 6) * kl
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        run_rec += rec.item()
        run_kl += kl.item()
    if epoch % 3 == 2:
        print(f"epoch {epoch + 1:2d}  rec {run_rec / len(batches):8.4f}  kl {run_kl / len(batches):7.4f}")

enc.eval(), dec.eval()
with torch.no_grad():
    mu, logvar = enc(test_x)
    err = F.mse_loss(torch.sigmoid(dec(mu)), test_x).item()
    fake = torch.sigmoid(dec(torch.randn(400, LATENT)))
    print(f"test reconstruction mse {err:.5f} (variance of the pictures {test_x.var(dim=0).mean():.5f})")
    print(f"distance of generated pictures to the nearest real one {nearest(fake, train_x):.3f}"
          f" (real test pictures {nearest(test_x, train_x):.3f})")
    print(f"latent mean {mu.mean():.2f}, spread {mu.std(dim=0).mean():.2f}")
