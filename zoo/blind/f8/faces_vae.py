"""Beta-VAE on synthetic 8x8 'faces' with KL annealing."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Annealer:
    def __init__(self, start=1e-3, factor=1.9):
        self.value = start
        self.factor = factor

    def epoch_end(self):
        self.value *= self.factor


def faces(n, g):
    yy, xx = torch.meshgrid(torch.linspace(-1, 1, 8), torch.linspace(-1, 1, 8), indexing="ij")
    c = torch.rand(n, 4, generator=g) - 0.5
    eyes = torch.exp(-8 * ((xx - 0.4 - 0.3 * c[:, 0, None, None]) ** 2 + (yy + 0.3) ** 2))
    eyes = eyes + torch.exp(-8 * ((xx + 0.4 + 0.3 * c[:, 1, None, None]) ** 2 + (yy + 0.3) ** 2))
    mouth = torch.exp(-10 * (yy - 0.5 - c[:, 2, None, None] * xx ** 2) ** 2) * (xx.abs() < 0.6)
    return (eyes + mouth).flatten(1) + 0.03 * torch.randn(n, 64, generator=g)


class VAE(nn.Module):
    def __init__(self, latent=6):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(64, 48), nn.ReLU())
        self.mu = nn.Linear(48, latent)
        self.lv = nn.Linear(48, latent)
        self.dec = nn.Sequential(nn.Linear(latent, 48), nn.ReLU(), nn.Linear(48, 64))

    def forward(self, x):
        h = self.enc(x)
        mu, lv = self.mu(h), self.lv(h)
        z = mu + torch.randn_like(mu) * (0.5 * lv).exp()
        return self.dec(z), mu, lv


def losses(x, out, mu, lv):
    rec = F.mse_loss(out, x, reduction="none").sum(1).mean()
    kl = 0.5 * (mu.pow(2) + lv.exp() - 1 - lv).sum(1).mean()
    return rec, kl


def main():
    torch.manual_seed(23)
    g = torch.Generator().manual_seed(23)
    data = faces(2000, g)
    vae = VAE()
    beta = Annealer()
    opt = torch.optim.SGD(vae.parameters(), lr=5e-3, momentum=0.8)
    step = 0
    for epoch in range(28):
        for idx in torch.randperm(len(data), generator=g).split(100):
            x = data[idx]
            rec, kl = losses(x, *vae(x))
            loss = rec + beta.value * kl
            opt.zero_grad()
            loss.backward()
            opt.step()
            if step % 10 == 0:
                print(f"epoch {epoch:2d} step {step:4d} loss {loss.item():.4f} rec {rec.item():.4f} kl {kl.item():.4f}")
            step += 1
        beta.epoch_end()


if __name__ == "__main__":
    main()
