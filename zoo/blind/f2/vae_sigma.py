import math
import torch
from torch import nn

torch.manual_seed(0)

# 8x8 glyphs: a bright frame, a moving bar and pixel noise inside
def make_glyphs(n):
    img = 0.05 * torch.randn(n, 8, 8)
    col = torch.randint(1, 7, (n,))
    img[torch.arange(n), 1:7, col] += 1.0
    img[:, 0, :] = 1.0
    img[:, -1, :] = 1.0
    img[:, :, 0] = 1.0
    img[:, :, -1] = 1.0
    return img.flatten(1)


class VAE(nn.Module):
    def __init__(self, loc, scale, d=64, h=64, z=6):
        super().__init__()
        self.register_buffer("loc", loc)
        self.register_buffer("scale", scale)
        self.enc = nn.Sequential(nn.Linear(d, h), nn.Tanh(), nn.Linear(h, 2 * z))
        self.dec = nn.Sequential(nn.Linear(z, h), nn.Tanh(), nn.Linear(h, d))
        self.var = nn.Parameter(torch.ones(d))

    def forward(self, x):
        mu, logvar = self.enc(x).chunk(2, dim=1)
        z = mu + torch.randn_like(mu) * torch.exp(0.5 * logvar)
        rec = self.loc + self.scale * self.dec(z)
        sigma = torch.sqrt(self.var)
        nll = 0.5 * ((x - rec) / sigma) ** 2
        nll = nll + torch.log(sigma) + 0.5 * math.log(2 * math.pi)
        kl = 0.5 * (mu ** 2 + logvar.exp() - 1 - logvar)
        return nll.sum(1).mean(), kl.sum(1).mean()


def main():
    data = make_glyphs(1024)
    vae = VAE(data.mean(0), data.std(0))
    optim = torch.optim.Adam(vae.parameters(), lr=5e-3)
    for it in range(400):
        idx = torch.randint(0, len(data), (64,))
        nll, kl = vae(data[idx])
        loss = nll + kl
        optim.zero_grad()
        loss.backward()
        optim.step()
        if it % 40 == 0 or it == 399:
            print(f"it {it:4d}  nll {nll.item():9.3f}  kl {kl.item():7.3f}")


if __name__ == "__main__":
    main()
