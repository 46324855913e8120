"""VAE with summed loss terms and beta warm-up: total loss rises while beta grows."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(11)
basis = torch.randn(4, 64)


def data(n):
    return torch.sigmoid(2 * torch.randn(n, 4) @ basis * 0.7).bernoulli()


xtr, xva = data(5000), data(800)
enc = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 16))
dec = nn.Sequential(nn.Linear(8, 128), nn.ReLU(), nn.Linear(128, 64))
opt = torch.optim.Adam([*enc.parameters(), *dec.parameters()], lr=2e-3)


def elbo_terms(x):
    mu, lv = enc(x).chunk(2, 1)
    z = mu + (0.5 * lv).exp() * torch.randn_like(mu)
    rec = F.binary_cross_entropy_with_logits(dec(z), x, reduction="sum")
    kl = -0.5 * (1 + lv - mu ** 2 - lv.exp()).sum()
    return rec, kl


step, total = 0, 14 * 78
for ep in range(14):
    perm = torch.randperm(5000)
    run = 0.0
    for i in range(0, 78):
        beta = min(1.0, step / (0.6 * total))
        rec, kl = elbo_terms(xtr[perm[i * 64:(i + 1) * 64]])
        loss = rec + beta * kl
        opt.zero_grad()
        loss.backward()
        opt.step()
        run += loss.item() / 78
        step += 1
    with torch.no_grad():
        r, k = elbo_terms(xva)
    print(f"ep {ep} beta {beta:.2f} batch loss {run:.1f} | val rec {r / 800:.2f} kl {k / 800:.2f} -elbo {(r + k) / 800:.2f} (independent bits 44.36)")
