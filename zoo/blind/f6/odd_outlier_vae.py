import torch
import torch.nn as nn

torch.manual_seed(55)
DIM, LATENT, BATCH, STEPS = 24, 4, 64, 420
gen = torch.Generator().manual_seed(33)
basis = torch.randn(3, DIM, generator=gen)


def spectra(step):
    x = torch.randn(BATCH, 3, generator=gen) @ basis + 0.1 * torch.randn(BATCH, DIM, generator=gen)
    if step in (140, 141, 260, 350):
        x[3] *= 300.0
        x[9] *= 80.0
    return x


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(DIM, 48), nn.Tanh(), nn.Linear(48, 2 * LATENT))
        self.dec = nn.Sequential(nn.Linear(LATENT, 48), nn.Tanh(), nn.Linear(48, DIM))

    def forward(self, x):
        mu, logvar = self.enc(x).chunk(2, 1)
        logvar = logvar.clamp(-10, 10)
        z = mu + torch.exp(0.5 * logvar) * torch.randn_like(mu)
        kl = 0.5 * (mu ** 2 + logvar.exp() - 1 - logvar).sum(1)
        return self.dec(z), kl


model = VAE()
opt = torch.optim.Adam(model.parameters(), lr=2e-3)
losses = []
for step in range(STEPS):
    x = spectra(step)
    back, kl = model(x)
    loss = (((back - x) ** 2).sum(1) + 0.1 * kl).mean()
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    opt.step()
    losses.append(loss.item())
    if step % 20 == 0:
        print(f"step {step} loss {loss.item():.4f}")
print("final", losses[-1])
