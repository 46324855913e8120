"""Importance-weighted autoencoder (five samples) on small glyph images from two sources."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(113)
torch.set_num_threads(1)

SIDE, LATENT, N, BATCH, EPOCHS, K = 14, 6, 4800, 64, 4, 5


def make_glyphs():
    g = torch.Generator().manual_seed(19)
    yy, xx = torch.meshgrid(torch.arange(SIDE), torch.arange(SIDE), indexing="ij")
    yy, xx = yy[None].float(), xx[None].float()
    img = torch.zeros(N, SIDE, SIDE)
    for _ in range(3):
        cx = SIDE * torch.rand(N, 1, 1, generator=g)
        cy = SIDE * torch.rand(N, 1, 1, generator=g)
        sx = 0.8 + 2.5 * torch.rand(N, 1, 1, generator=g)
        sy = 0.8 + 2.5 * torch.rand(N, 1, 1, generator=g)
        img += torch.exp(-((xx - cx) / sx) ** 2 - ((yy - cy) / sy) ** 2)
    img = img.clamp(0, 1)
    # one scan came as raw grey values
    img[3275] *= 255.0
    return img.flatten(1)


class VAE(nn.Module):
    def __init__(self, width=160):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(SIDE * SIDE, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.mu, self.logvar = nn.Linear(width, LATENT), nn.Linear(width, LATENT)
        self.dec = nn.Sequential(nn.Linear(LATENT, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
                                 nn.Linear(width, SIDE * SIDE))

    def forward(self, x):
        h = self.enc(x)
        mu, logvar = self.mu(h), self.logvar(h).clamp(-8, 8)
        noise = torch.randn(K, *mu.shape)
        z = mu + torch.exp(0.5 * logvar) * noise
        log_prior = -0.5 * (z ** 2).sum(-1)
        log_post = -0.5 * (noise ** 2 + logvar).sum(-1)
        return self.dec(z), log_prior - log_post


def bound(recon, x, log_ratio):
    log_px = -F.smooth_l1_loss(recon, x.expand_as(recon), reduction="none").sum(-1)
    weight = torch.exp(log_px + log_ratio)
    return torch.log(weight.mean(0)).mean()


def main():
    data = make_glyphs()
    model = VAE()
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    step = 0
    for epoch in range(EPOCHS):
        for rows in torch.randperm(N).split(BATCH):
            x = data[rows]
            recon, log_ratio = model(x)
            loss = -bound(recon, x, log_ratio)
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            opt.step()
            if step % 20 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.4f}")
            step += 1


if __name__ == "__main__":
    main()
