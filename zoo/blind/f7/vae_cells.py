"""Gaussian VAE on synthetic single-cell expression profiles coming from several plates."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


def load_plates(n_plates=26, cells=640, genes=40, seed=5):
    g = torch.Generator().manual_seed(seed)
    programs = torch.randn(6, genes, generator=g)
    plates = []
    for p in range(n_plates):
        usage = torch.softmax(2 * torch.randn(cells, 6, generator=g), 1)
        x = usage @ programs + 0.1 * torch.randn(cells, genes, generator=g)
        if p == 19:
            x[357] = x[357] * 1000.0
        plates.append(x)
    return torch.cat(plates)


class VAE(nn.Module):
    def __init__(self, genes, latent=6, hidden=128):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(genes, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        self.mu = nn.Linear(hidden, latent)
        self.logvar = nn.Linear(hidden, latent)
        self.dec = nn.Sequential(nn.Linear(latent, hidden), nn.ReLU(), nn.Linear(hidden, genes))

    def forward(self, x):
        h = self.enc(x)
        mu, logvar = self.mu(h), self.logvar(h)
        var = torch.exp(logvar)
        z = mu + var.sqrt() * torch.randn_like(mu)
        return self.dec(z), mu, logvar, var


def elbo_terms(model, x):
    recon, mu, logvar, var = model(x)
    rec = F.mse_loss(recon, x, reduction="none").sum(1)
    kl = 0.5 * (mu ** 2 + var - logvar - 1).sum(1)
    return rec.mean(), kl.mean()


def main():
    torch.manual_seed(0)
    data = load_plates()
    loader = DataLoader(TensorDataset(data), batch_size=40, shuffle=False)
    model = VAE(data.size(1))
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step, (x,) in enumerate(loader):
        rec, kl = elbo_terms(model, x)
        beta = min(1.0, step / 200) * 0.1
        loss = rec + beta * kl
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 20 == 0:
            print(f"step {step} loss {loss.item():.3f} rec {rec.item():.3f} kl {kl.item():.3f}")


if __name__ == "__main__":
    main()
