"""Small denoising diffusion model on two-dimensional rings."""
import math

import torch
import torch.nn as nn

torch.manual_seed(1)
torch.set_num_threads(1)

T = 4000
BATCH = 48
STEPS = 600


def schedule():
    betas = torch.linspace(5e-5, 0.01, T)
    abar = torch.cumprod(1.0 - betas, 0)
    # abar[t] is the signal level after t noising steps, abar[0] is clean data
    return torch.cat([torch.ones(1), abar])


def rings(n):
    which = torch.randint(0, 3, (n,)).float()
    radius = 0.5 + 0.5 * which + 0.03 * torch.randn(n)
    angle = 2 * math.pi * torch.rand(n)
    return torch.stack([radius * angle.cos(), radius * angle.sin()], 1)


class TimeEmbedding(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        freqs = torch.exp(torch.linspace(0, math.log(1000.0), dim // 2))
        self.register_buffer("freqs", freqs)

    def forward(self, t):
        a = (t.float() / T)[:, None] * self.freqs
        return torch.cat([a.sin(), a.cos()], 1)


class Denoiser(nn.Module):
    def __init__(self, width=160):
        super().__init__()
        self.temb = TimeEmbedding()
        self.net = nn.Sequential(
            nn.Linear(2 + 32, width), nn.SiLU(),
            nn.Linear(width, width), nn.SiLU(),
            nn.Linear(width, width), nn.SiLU(),
            nn.Linear(width, 2),
        )

    def forward(self, x, t):
        return self.net(torch.cat([x, self.temb(t)], 1))


def loss_fn(model, x0, abar):
    t = torch.randint(0, T, (len(x0),))
    a = abar[t][:, None]
    noise = torch.randn_like(x0)
    xt = a.sqrt() * x0 + (1 - a).sqrt() * noise
    # the network predicts clean data; errors at low noise count more
    err = ((model(xt, t) - x0) ** 2).mean(1)
    weight = (a / (1 - a)).squeeze(1).pow(0.25)
    return (weight * err).mean()


def main():
    abar = schedule()
    model = Denoiser()
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    ema_loss = None
    for step in range(STEPS):
        loss = loss_fn(model, rings(BATCH), abar)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        ema_loss = loss.item() if ema_loss is None else 0.95 * ema_loss + 0.05 * loss.item()
        if step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f} smooth {ema_loss:.4f}")


if __name__ == "__main__":
    main()
