import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits

torch.set_num_threads(1)
torch.manual_seed(131)


class VAE(nn.Module):
    def __init__(self, latent=8):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 2 * latent))
        self.dec = nn.Sequential(nn.Linear(latent, 96), nn.ReLU(), nn.Linear(96, 64))

    def forward(self, x):
        mu, logvar = self.enc(x).chunk(2, dim=1)
        logvar = logvar.clamp(-8, 8)
        z = mu + torch.exp(0.5 * logvar) * torch.randn_like(mu)
        return self.dec(z), mu, logvar


def elbo(recon, x, mu, logvar):
    rec = F.binary_cross_entropy_with_logits(recon.float(), x, reduction="none").sum(1)
    kl = -0.5 * (1 + logvar.float() - mu.float().pow(2) - logvar.float().exp()).sum(1)
    return (rec + kl).mean()


class Scale:
    def __init__(self, value=256.0, every=30):
        self.value = value
        self.every = every
        self.count = 0

    def update(self):
        self.count += 1
        if self.count % self.every == 0:
            self.value *= 2.0


def main():
    x = torch.tensor(load_digits().data, dtype=torch.float32) / 16.0
    model = VAE()
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    scale = Scale()
    step = 0
    for epoch in range(12):
        for idx in torch.randperm(len(x)).split(36):
            batch = x[idx]
            with torch.autocast("cpu", dtype=torch.float16):
                recon, mu, logvar = model(batch)
            loss = elbo(recon, batch, mu, logvar)
            opt.zero_grad()
            (loss * scale.value).backward()
            for p in model.parameters():
                p.grad.div_(scale.value)
            opt.step()
            scale.update()
            if step % 25 == 0:
                print(f"step {step} loss {loss.item():.4f}")
            step += 1


if __name__ == "__main__":
    main()
