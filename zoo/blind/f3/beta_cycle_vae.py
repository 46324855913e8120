import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(8)


class VAE(nn.Module):
    def __init__(self, d=64, z=6):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(d, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.to_mu = nn.Linear(64, z)
        self.to_logvar = nn.Linear(64, z)
        self.dec = nn.Sequential(nn.Linear(z, 64), nn.ReLU(), nn.Linear(64, d))

    def forward(self, x):
        h = self.enc(x)
        mu, logvar = self.to_mu(h), self.to_logvar(h)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
        return self.dec(z), mu, logvar


def elbo(x, recon, mu, logvar, beta):
    kl = -0.5 * (1 + logvar - mu ** 2 - logvar.exp()).sum(1).mean()
    rec = F.mse_loss(recon, x, reduction="none").sum(1).mean()
    return rec + beta * kl, rec, kl


def cyclic(step, period=200, low=1e-3, high=4e-1):
    cycle = step // period
    return low if cycle == 0 else high * (0.5 ** (cycle - 1))


def blobs(n=4096, d=64, k=8):
    centers = torch.randn(k, d)
    labels = torch.randint(0, k, (n,))
    return centers[labels] + 0.3 * torch.randn(n, d)


data = blobs()
model = VAE()
opt = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
for step in range(400):
    for group in opt.param_groups:
        group["lr"] = cyclic(step)
    x = data[torch.randint(0, len(data), (64,))]
    recon, mu, logvar = model(x)
    beta = min(1.0, (step % 200) / 100)
    loss, rec, kl = elbo(x, recon, mu, logvar, beta)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 25 == 0:
        print(f"step {step:3d} loss {loss.item():.3f} rec {rec.item():.3f} kl {kl.item():.3f}")
