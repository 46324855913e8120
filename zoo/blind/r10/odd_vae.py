"""Variational autoencoder on small synthetic glyphs, with KL annealing.

The weight of the KL term is nearly zero for four epochs and then goes up to 1. The
weighted loss therefore rises for a while although the model improves: the quantity that counts is
the full negative ELBO (weight one), printed next to it for train and validation.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
SIDE, LATENT, WARM = 16, 6, 7


def glyphs(n, seed):
    """Binary images with a filled ellipse and a bar of random pose."""
    g = torch.Generator().manual_seed(seed)
    u = lambda lo, hi: lo + (hi - lo) * torch.rand(n, 1, 1, generator=g)
    yy, xx = torch.meshgrid(torch.arange(SIDE), torch.arange(SIDE), indexing="ij")
    cx, cy, rx, ry = u(4, 12), u(4, 12), u(1.5, 4), u(1.5, 4)
    disc = ((xx - cx) / rx) ** 2 + ((yy - cy) / ry) ** 2 < 1
    angle, offset = u(0, 3.14159), u(-4, 4)
    bar = ((xx - 8) * angle.sin() - (yy - 8) * angle.cos() - offset).abs() < 1.0
    return (disc | bar).float().flatten(1)


class VAE(nn.Module):
    def __init__(self, hidden=256):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(SIDE ** 2, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(),
                                     nn.Linear(hidden, 2 * LATENT))
        self.decoder = nn.Sequential(nn.Linear(LATENT, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(),
                                     nn.Linear(hidden, SIDE ** 2))

    def terms(self, x):
        mu, logvar = self.encoder(x).chunk(2, dim=1)
        z = mu + (0.5 * logvar).exp() * torch.randn_like(mu)
        rec = F.binary_cross_entropy_with_logits(self.decoder(z), x, reduction="none").sum(1)
        kl = 0.5 * (mu ** 2 + logvar.exp() - 1 - logvar).sum(1)
        return rec.mean(), kl.mean()


def neg_elbo(model, x, draws=5):
    model.eval()
    with torch.no_grad():
        rec, kl = zip(*(model.terms(x) for _ in range(draws)))
    return torch.stack(rec).mean().item(), torch.stack(kl).mean().item()


torch.manual_seed(0)
train, val, test = glyphs(6000, 1), glyphs(1000, 2), glyphs(1000, 3)
model = VAE()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
p = train.mean(0).clamp(1e-4, 1 - 1e-4)
baseline = F.binary_cross_entropy(p.expand_as(val), val, reduction="sum").item() / len(val)
print(f"independent pixels: {baseline:.1f} nats per image")

for epoch in range(1, 17):
    beta = min(1.0, 0.02 + max(0, epoch - 4) / WARM)
    model.train()
    weighted, full, steps = 0.0, 0.0, 0
    for rows in torch.randperm(len(train)).split(64):
        rec, kl = model.terms(train[rows])
        loss = rec + beta * kl
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        weighted += loss.item()
        full += (rec + kl).item()
        steps += 1
    rec, kl = neg_elbo(model, val)
    print(f"epoch {epoch:2d} beta {beta:.1f} train weighted {weighted / steps:.2f} train -ELBO {full / steps:.2f} "
          f"val -ELBO {rec + kl:.2f} (rec {rec:.2f} kl {kl:.2f})")

rec, kl = neg_elbo(model, test)
print(f"test -ELBO {rec + kl:.2f} (rec {rec:.2f} kl {kl:.2f})")
