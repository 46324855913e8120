import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


def glyphs(n, seed):
    """12x12 soft binary images: two strokes whose angle and place vary; 5 stroke families"""
    g = torch.Generator().manual_seed(seed)
    r = lambda *s: torch.rand(*s, generator=g)
    yy, xx = torch.meshgrid(torch.arange(12.0), torch.arange(12.0), indexing="ij")
    cls = torch.randint(0, 5, (n,), generator=g)
    cx, cy = 4 + 3 * r(n), 4 + 3 * r(n)
    ang = cls * 0.628 + 0.5 * (r(n) - 0.5)
    width = 0.7 + 0.5 * r(n)
    dx, dy = xx - cx[:, None, None], yy - cy[:, None, None]
    c, s = torch.cos(ang)[:, None, None], torch.sin(ang)[:, None, None]
    along, across = c * dx + s * dy, -s * dx + c * dy
    line = torch.exp(-(across / width[:, None, None]) ** 2) * torch.sigmoid(4 * (5 - along.abs()))
    dot = torch.exp(-((along - 3) ** 2 + (across - 2.5) ** 2) / 1.5)
    img = torch.maximum(line, dot).clamp(0, 1)
    return torch.bernoulli(img, generator=g).flatten(1), cls


class VAE(nn.Module):
    def __init__(self, d=144, hidden=128, latent=8):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(d, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        self.to_mu = nn.Linear(hidden, latent)
        self.to_logvar = nn.Linear(hidden, latent)
        self.dec = nn.Sequential(nn.Linear(latent, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(),
                                 nn.Linear(hidden, d))

    def encode(self, x):
        h = self.enc(x)
        return self.to_mu(h), self.to_logvar(h).clamp(-8, 4)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        return mu + torch.randn_like(std) * std

    def forward(self, x):
        mu, logvar = self.encode(x)
        z = self.reparameterize(mu, logvar)
        return self.dec(z), mu, logvar


def elbo_terms(logits, x, mu, logvar):
    rec = F.binary_cross_entropy_with_logits(logits, x, reduction="none").sum(1).mean()
    kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(1).mean()
    return rec, kl


@torch.no_grad()
def evaluate(model, x):
    model.eval()
    logits, mu, logvar = model(x)
    rec, kl = elbo_terms(logits, x, mu, logvar)
    active = (mu.var(0) > 0.05).sum().item()
    return rec.item(), kl.item(), active


def probe(model, xtr, ytr, xte, yte):
    """share of test images whose 9 nearest training codes have their class in the majority"""
    model.eval()
    with torch.no_grad():
        ztr, zte = model.encode(xtr)[0], model.encode(xte)[0]
    d = torch.cdist(zte, ztr)
    knn = d.topk(9, largest=False).indices
    pred = ytr[knn].mode(1).values
    return (pred == yte).float().mean().item()


@torch.no_grad()
def sample_gap(model, x, n=2000):
    """nearest real image (share of pixels that differ) of images generated from the prior"""
    z = torch.randn(n, model.to_mu.out_features)
    fake = (torch.sigmoid(model.dec(z)) > 0.5).float()
    return torch.cdist(fake, x, p=1).min(1).values.mean().item() / x.size(1)


def train(args):
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    xtr, ytr = glyphs(4000, seed=1)
    xva, yva = glyphs(800, seed=2)
    xte, yte = glyphs(800, seed=3)
    model = VAE(latent=args.latent)
    opt = torch.optim.Adam(model.parameters(), lr=args.lr)
    for epoch in range(1, args.epochs + 1):
        model.train()
        beta = min(1.0, epoch / args.warm)
        tot_rec = tot_kl = 0.0
        order = torch.randperm(len(xtr))
        chunks = order.split(args.batch)
        for idx in chunks:
            x = xtr[idx]
            logits, mu, logvar = model(x)
            rec, kl = elbo_terms(logits, x, mu, logvar)
            loss = rec + beta * kl
            opt.zero_grad()
            loss.backward()
            opt.step()
            tot_rec += rec.item()
            tot_kl += kl.item()
        vrec, vkl, active = evaluate(model, xva)
        if epoch % 5 == 0 or epoch == 1:
            print(f"epoch {epoch:3d} beta {beta:.2f} train rec {tot_rec / len(chunks):.2f} kl {tot_kl / len(chunks):.2f} | "
                  f"val rec {vrec:.2f} kl {vkl:.2f} -elbo {vrec + vkl:.2f} active {active}")
    rec, kl, active = evaluate(model, xte)
    print(f"test -elbo {rec + kl:.2f} (rec {rec:.2f}, kl {kl:.2f}), active units {active}/{args.latent}, "
          f"knn probe {probe(model, xtr, ytr, xte, yte):.3f}, sample gap {sample_gap(model, xtr):.4f}")


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=45)
    ap.add_argument("--batch", type=int, default=100)
    ap.add_argument("--lr", type=float, default=1.5e-3)
    ap.add_argument("--latent", type=int, default=8)
    ap.add_argument("--warm", type=int, default=10)
    ap.add_argument("--seed", type=int, default=5)
    train(ap.parse_args())
