"""Tiny DDPM on a ring of Gaussians."""
import copy
import math
import torch
import torch.nn as nn

torch.manual_seed(7)
T = 20
STEPS = 500
BATCH = 160


def ring(n):
    k = torch.randint(0, 3, (n,))
    ang = k.float() * (2 * math.pi / 3)
    centres = torch.stack([ang.cos(), ang.sin()], dim=1) * 1.4
    return centres + 0.2 * torch.randn(n, 2)


betas = torch.linspace(0.02, 0.4, T)
alphas = 1.0 - betas
alpha_bar = torch.cumprod(alphas, dim=0)


class Denoiser(nn.Module):
    def __init__(self, hidden=80, freqs=3):
        super().__init__()
        self.register_buffer("freqs", 2.0 ** torch.arange(freqs) * math.pi / 2)
        self.net = nn.Sequential(
            nn.Linear(2 + 2 * freqs, hidden), nn.SiLU(),
            nn.Linear(hidden, hidden), nn.SiLU(),
            nn.Linear(hidden, 2),
        )

    def forward(self, x, t):
        tau = (t / T).unsqueeze(1) * self.freqs
        return self.net(torch.cat([x, tau.sin(), tau.cos()], dim=1))


def q_sample(x0, t, noise):
    ab = alpha_bar[t].unsqueeze(1)
    return ab.sqrt() * x0 + (1 - ab).sqrt() * noise


def diffusion_loss(model, x0):
    t = torch.randint(0, T, (x0.size(0),))
    noise = torch.randn_like(x0)
    pred = model(q_sample(x0, t, noise), t)
    return ((pred - noise) ** 2).mean()


@torch.no_grad()
def sample(model, n):
    x = torch.randn(n, 2)
    for i in reversed(range(T)):
        t = torch.full((n,), i)
        eps = model(x, t)
        x = (x - betas[i] / (1 - alpha_bar[i]).sqrt() * eps) / alphas[i].sqrt()
        if i > 0:
            x = x + betas[i].sqrt() * torch.randn_like(x)
    return x


model = Denoiser()
ema = copy.deepcopy(model)
ema_decay = 0.99
opt = torch.optim.Adam(model.parameters(), lr=1.5e-2)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=STEPS)

running = 0.0
for step in range(1, STEPS + 1):
    loss = diffusion_loss(model, ring(BATCH))
    opt.zero_grad()
    loss.backward()
    opt.step()
    sched.step()
    with torch.no_grad():
        for pe, p in zip(ema.parameters(), model.parameters()):
            pe.mul_(ema_decay).add_(p, alpha=1 - ema_decay)
    running += loss.item()
    if step % 100 == 0:
        print(f"step {step:4d}  loss {running / 100:.4f}")
        running = 0.0

pts = sample(ema, 1000)
ang = torch.arange(3) * (2 * math.pi / 3)
centres = torch.stack([ang.cos(), ang.sin()], dim=1) * 1.4
dist = torch.cdist(pts, centres).min(dim=1).values
print(f"samples: std {pts.std():.3f} (data {ring(1000).std():.3f})  mean distance to a mode {dist.mean():.3f}  within 0.5 of a mode {(dist < 0.5).float().mean():.3f}")
