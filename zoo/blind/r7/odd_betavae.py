"""VAE with a warm-up of the KL weight: the total loss rises while the weight grows, which is wanted."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(7)
torch.set_num_threads(1)

DIM, LATENT = 20, 3
mix = torch.randn(LATENT, DIM)


def make(n):
    z = torch.randn(n, LATENT)
    return torch.tanh(z @ mix * 0.6) * 1.5 + 0.1 * torch.randn(n, DIM)


x_train, x_val, x_test = make(3000), make(600), make(600)


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(DIM, 64), nn.ReLU(), nn.Linear(64, 2 * LATENT))
        self.dec = nn.Sequential(nn.Linear(LATENT, 64), nn.ReLU(), nn.Linear(64, DIM))

    def forward(self, x):
        mu, logvar = self.enc(x).chunk(2, dim=1)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp() if self.training else mu
        return self.dec(z), mu, logvar


def terms(out, x):
    recon, mu, logvar = out
    rec = 0.5 * ((recon - x) / 0.2).pow(2).sum(1).mean()
    kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(1).mean()
    return rec, kl


vae = VAE()
opt = torch.optim.Adam(vae.parameters(), lr=4e-3)
EPOCHS, WARM = 24, 16
for epoch in range(EPOCHS):
    vae.train()
    # the KL term comes in late and strongly
    beta = 2.0 * max(0.0, min(1.0, (epoch - 4) / WARM))
    perm = torch.randperm(len(x_train))
    total = 0.0
    for i in range(0, len(perm), 150):
        xb = x_train[perm[i:i + 150]]
        rec, kl = terms(vae(xb), xb)
        loss = rec + beta * kl
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item() * len(xb)
    vae.eval()
    with torch.no_grad():
        rec, kl = terms(vae(x_val), x_val)
    print(f"epoch {epoch:2d} beta {beta:.2f} train {total / len(perm):.3f} val rec {rec.item():.3f} kl {kl.item():.3f}")

with torch.no_grad():
    rec, kl = terms(vae(x_test), x_test)
    explained = 1 - (vae(x_test)[0] - x_test).pow(2).sum() / (x_test - x_test.mean(0)).pow(2).sum()
    fake = vae.dec(torch.randn(600, LATENT))
print(f"test rec {rec.item():.3f} kl {kl.item():.3f} explained variance {explained.item():.4f}")
print(f"std of samples {fake.std().item():.3f} of data {x_test.std().item():.3f}")
