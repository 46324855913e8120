"""Variational autoencoder on digits with an annealed divergence: the training loss rises during the warm-up."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits

torch.set_num_threads(1)
torch.manual_seed(4)
x = torch.tensor(load_digits().data / 16.0, dtype=torch.float32)
x = x[torch.randperm(len(x))]
train, test = x[:1500], x[1500:]
latent, epochs, warm = 8, 160, 50


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(64, 128), nn.SiLU(), nn.Linear(128, 64), nn.SiLU(), nn.Linear(64, 2 * latent))
        self.dec = nn.Sequential(nn.Linear(latent, 64), nn.SiLU(), nn.Linear(64, 128), nn.SiLU(), nn.Linear(128, 64))
        self.log_scale = nn.Parameter(torch.tensor(-1.0))

    def terms(self, x):
        mu, logvar = self.enc(x).chunk(2, dim=1)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
        err = (x - self.dec(z)) * (-self.log_scale).exp()
        nll = (0.5 * err.pow(2) + self.log_scale + 0.5 * math.log(2 * math.pi)).sum(1)
        kl_dim = 0.5 * (mu.pow(2) + logvar.exp() - 1 - logvar)
        return nll, kl_dim

    @torch.no_grad()
    def log_likelihood(self, x, k=64):
        """Importance-weighted bound."""
        logw = []
        for _ in range(k):
            mu, logvar = self.enc(x).chunk(2, dim=1)
            eps = torch.randn_like(mu)
            z = mu + eps * (0.5 * logvar).exp()
            err = (x - self.dec(z)) * (-self.log_scale).exp()
            logp = -(0.5 * err.pow(2) + self.log_scale + 0.5 * math.log(2 * math.pi)).sum(1)
            logw.append(logp + 0.5 * (eps.pow(2) + logvar - z.pow(2)).sum(1))
        return (torch.logsumexp(torch.stack(logw), 0) - math.log(k)).mean().item()


model = VAE()
opt = torch.optim.Adam(model.parameters(), lr=2e-3)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, epochs)
for e in range(1, epochs + 1):
    beta = min(1.0, e / warm)
    sums = torch.zeros(3)
    for b in train[torch.randperm(len(train))].split(60):
        nll, kl_dim = model.terms(b)
        kl = kl_dim.sum(1)
        loss = (nll + beta * kl).mean()
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 20.0)
        opt.step()
        sums += torch.tensor([loss.item(), nll.mean().item(), kl.mean().item()]) / 25
    sched.step()
    if e % 16 == 0:
        with torch.no_grad():
            nll, kl_dim = model.terms(test)
        active = int((kl_dim.mean(0) > 0.05).sum())
        print(f"epoch {e:3d}  beta {beta:.2f}  loss {sums[0]:.2f}  nll {sums[1]:.2f}  kl {sums[2]:.2f}  "
              f"test -elbo {(nll + kl_dim.sum(1)).mean().item():.2f}  active {active}/{latent}")
with torch.no_grad():
    mu = model.enc(test).chunk(2, dim=1)[0]
    mse = F.mse_loss(model.dec(mu), test).item()
mean_mse = (test - train.mean(0)).pow(2).mean().item()
print(f"test log-likelihood >= {model.log_likelihood(test):.2f}  reconstruction mse {mse:.4f}  (mean image {mean_mse:.4f})")
