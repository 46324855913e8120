"""VAE with the KL weight raised slowly from 0 to 1: the total loss goes up in the middle of the run."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(18)
z_true = torch.randn(2000, 3)
data = torch.tanh(z_true @ torch.randn(3, 24)) + 0.1 * torch.randn(2000, 24)
enc = nn.Sequential(nn.Linear(24, 64), nn.ReLU(), nn.Linear(64, 12))
dec = nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 24))
opt = torch.optim.Adam([*enc.parameters(), *dec.parameters()], lr=3e-3)
step, warm = 0, 250
for epoch in range(12):
    for xb in data[torch.randperm(2000)].split(64):
        mu, lv = enc(xb).chunk(2, 1)
        z = mu + torch.randn_like(mu) * (0.5 * lv).exp()
        rec = F.mse_loss(dec(z), xb, reduction="none").sum(1).mean() / (2 * 0.2 ** 2)
        kl = 0.5 * (mu ** 2 + lv.exp() - 1 - lv).sum(1).mean()
        beta = min(1.0, step / warm)
        loss = rec + beta * kl
        opt.zero_grad()
        loss.backward()
        opt.step()
        step += 1
    print(f"epoch {epoch:2d} beta {beta:.2f} total {loss.item():.2f} rec {rec.item():.2f} kl {kl.item():.2f}")
