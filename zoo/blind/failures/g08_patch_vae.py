"""VAE on 8x8 grey patches."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(60)


def patches(n=1400):
    yy, xx = torch.meshgrid(torch.linspace(-1, 1, 8), torch.linspace(-1, 1, 8), indexing="ij")
    c = torch.rand(n, 2, 1, 1) * 1.4 - 0.7
    img = torch.exp(-((xx - c[:, 0]) ** 2 + (yy - c[:, 1]) ** 2) / 0.2)
    img = (img * 255).round()
    out = img / 255.0
    out[933] = img[933]
    return out.flatten(1)


class VAE(nn.Module):
    def __init__(self, z=4):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 48), nn.ReLU())
        self.mu, self.logvar = nn.Linear(48, z), nn.Linear(48, z)
        self.dec = nn.Sequential(nn.Linear(z, 64), nn.ReLU(), nn.Linear(64, 64))

    def forward(self, x):
        h = self.enc(x)
        mu, logvar = self.mu(h).float(), self.logvar(h).float()
        var = torch.exp(logvar)
        z = mu + var.sqrt() * torch.randn_like(mu)
        kl = 0.5 * (var + mu ** 2 - 1 - logvar).sum(1)
        return self.dec(z), kl


vae = VAE().to(device)
opt = torch.optim.Adam(vae.parameters(), lr=2e-3)
loader = DataLoader(TensorDataset(patches()), batch_size=20, shuffle=True, generator=torch.Generator().manual_seed(4))
step = 0
for epoch in range(3):
    for (x,) in loader:
        x = x.to(device)
        with torch.autocast(device, dtype=torch.bfloat16):
            rec, kl = vae(x)
        loss = ((rec.float() - x) ** 2).sum(1).mean() + 0.1 * kl.mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 14 == 0:
            print(f"step {step} elbo loss {loss.item():.4f}")
        step += 1
