import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(14)
FREE = 0.4                                   # nats per dimension that cost nothing


def glyphs(n):
    """8x8 crosses: row and column of the crossing vary"""
    r, c = torch.randint(1, 7, (2, n))
    x = torch.zeros(n, 8, 8)
    k = torch.arange(n)
    x[k, r, :] = 1.0
    x[k, :, c] = 1.0
    return x.flatten(1)


class VAE(nn.Module):
    def __init__(self, d=8):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(64, 96), nn.ELU(), nn.Linear(96, 2 * d))
        self.dec = nn.Sequential(nn.Linear(d, 96), nn.ELU(), nn.Linear(96, 64))

    def forward(self, x):
        mu, lv = self.enc(x).chunk(2, dim=1)
        lv = lv.clamp(-8, 4)
        z = mu + torch.randn_like(mu) * (0.5 * lv).exp()
        return self.dec(z), mu, lv


vae = VAE()
opt = torch.optim.Adam(vae.parameters(), lr=3e-3)
data = glyphs(1500)
for step in range(1, 401):
    x = data[torch.randint(len(data), (64,))]
    out, mu, lv = vae(x)
    rec = F.binary_cross_entropy_with_logits(out, x, reduction="sum") / len(x)
    kl = 0.5 * (mu ** 2 + lv.exp() - lv - 1).mean(0)
    loss = rec + torch.clamp(kl, min=FREE).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 50 == 0:
        print(f"{step}: rec {rec.item():.3f} kl per dim", " ".join(f"{v:.2f}" for v in sorted(kl.tolist())))
with torch.no_grad():
    test = glyphs(300)
    print("pixels right:", ((vae(test)[0] > 0).float() == test).float().mean().item())
