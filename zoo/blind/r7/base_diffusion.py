"""DDPM on two-dimensional points with an EMA copy for sampling."""
import copy
import math
import torch
import torch.nn as nn

torch.manual_seed(21)
torch.set_num_threads(1)

T_STEPS, EPOCHS, STEPS, BATCH = 50, 8, 130, 256
EMA_DECAY = 0.99


def make_points(n, g):
    """Two interleaved spirals away from the origin."""
    arm = torch.randint(2, (n,), generator=g).float()
    r = torch.rand(n, generator=g).sqrt()
    ang = 3.0 * math.pi * r * 0.8 + math.pi * arm
    pts = torch.stack([r * ang.cos(), r * ang.sin()], dim=1) * 3.0
    return pts + 0.08 * torch.randn(n, 2, generator=g) + torch.tensor([2.0, -1.0])


data_gen = torch.Generator().manual_seed(1)
train_x, val_x, test_x = make_points(6000, data_gen), make_points(1500, data_gen), make_points(1500, data_gen)
mu, sd = train_x.mean(0), train_x.std(0)
train_n, val_n = (train_x - mu) / sd, (val_x - mu) / sd

# cosine schedule
s = torch.linspace(0, 1, T_STEPS + 1)
abar = torch.cos((s + 0.008) / 1.008 * math.pi / 2) ** 2
abar = abar / abar[0]
betas = (1 - abar[1:] / abar[:-1]).clamp(max=0.999)
alphas = 1 - betas
abar = torch.cumprod(alphas, 0)


class Denoiser(nn.Module):
    def __init__(self, width=96, n_freq=8):
        super().__init__()
        self.register_buffer("freq", 2.0 ** torch.arange(n_freq) * math.pi / 2)
        self.net = nn.Sequential(nn.Linear(2 + 2 * n_freq, width), nn.SiLU(),
                                 nn.Linear(width, width), nn.SiLU(),
                                 nn.Linear(width, width), nn.SiLU(),
                                 nn.Linear(width, 2))

    def forward(self, x, t):
        """t in [0, 1], one per row"""
        a = t[:, None] * self.freq
        return self.net(torch.cat([x, a.sin(), a.cos()], dim=1))


def q_sample(x0, t, noise):
    return abar[t].sqrt()[:, None] * x0 + (1 - abar[t]).sqrt()[:, None] * noise


batch_gen = torch.Generator().manual_seed(77)


def next_batch():
    idx = torch.randint(len(train_n), (BATCH,), generator=batch_gen)
    t = torch.randint(T_STEPS, (BATCH,), generator=batch_gen)
    noise = torch.randn(BATCH, 2, generator=batch_gen)
    return train_n[idx], t, noise


@torch.no_grad()
def val_loss(model):
    g = torch.Generator().manual_seed(4)
    t = torch.randint(T_STEPS, (len(val_n),), generator=g)
    noise = torch.randn(val_n.shape, generator=g)
    pred = model(q_sample(val_n, t, noise), t / T_STEPS)
    return (pred - noise).pow(2).mean().item()


@torch.no_grad()
def sample(model, n):
    g = torch.Generator().manual_seed(8)
    x = torch.randn(n, 2, generator=g)
    for i in reversed(range(T_STEPS)):
        t = torch.full((n,), float(i))
        eps = model(x, t / T_STEPS)
        x = (x - betas[i] / (1 - abar[i]).sqrt() * eps) / alphas[i].sqrt()
        if i > 0:
            var = betas[i] * (1 - abar[i - 1]) / (1 - abar[i])
            x = x + var.sqrt() * torch.randn(n, 2, generator=g)
    return x * sd + mu


def energy_distance(a, b):
    cross = torch.cdist(a, b).mean()
    return (2 * cross - torch.cdist(a, a).mean() - torch.cdist(b, b).mean()).item()


def nearest(a, b):
    """mean distance from each sample to its closest real point"""
    return torch.cdist(a, b).min(1).values.mean().item()


model = Denoiser()
ema = copy.deepcopy(model)
for p in ema.parameters():
    p.requires_grad_(False)
opt = torch.optim.Adam(model.parameters(), lr=4e-3)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=EPOCHS * STEPS)

for epoch in range(EPOCHS):
    model.train()
    total = 0.0
    for _ in range(STEPS):
        x0, t, noise = next_batch()
        x_t = q_sample(x0, t, noise)
        pred = model(x_t, t / T_STEPS)
        loss = (pred - noise).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        sched.step()
        with torch.no_grad():
            for pe, pm in zip(ema.parameters(), model.parameters()):
                pe.lerp_(pm, 1 - EMA_DECAY)
        total += loss.item()
    fake = sample(ema, 400)
    print(f"epoch {epoch} train {total / STEPS:.4f} val {val_loss(model):.4f} "
          f"ema val {val_loss(ema):.4f} energy {energy_distance(fake, val_x):.4f}")

fake = sample(ema, 1500)
print(f"reference energy distance train/test {energy_distance(train_x[:1500], test_x):.4f}")
print(f"test energy distance {energy_distance(fake, test_x):.4f} off-manifold {nearest(fake, test_x):.4f} "
      f"(real {nearest(train_x[:1500], test_x):.4f})")
