# %% [markdown]
# # DDPM on Fashion-MNIST
# Noise prediction with a small U-Net, EMA weights and ancestral sampling.

# %%
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader
from torchvision import datasets, transforms
from torchvision.utils import save_image

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)

T = 1000
EPOCHS = 20
BATCH = 128
LR = 2e-4
EMA_DECAY = 0.999

# %% Data in [-1, 1], padded to 32 x 32
tf = transforms.Compose([transforms.Pad(2), transforms.ToTensor(), transforms.Normalize(0.5, 0.5)])
train_set = datasets.FashionMNIST("data", train=True, download=True, transform=tf)
val_set = datasets.FashionMNIST("data", train=False, download=True, transform=tf)
train_loader = DataLoader(train_set, BATCH, shuffle=True, drop_last=True)
val_loader = DataLoader(val_set, 250)

# %% Noise schedule
betas = torch.linspace(1e-4, 0.02, T, device=device)
alphas = 1.0 - betas
alpha_bars = torch.cumprod(alphas, dim=0)
alpha_bars_prev = torch.cat([torch.ones(1, device=device), alpha_bars[:-1]])
posterior_var = betas * (1.0 - alpha_bars_prev) / (1.0 - alpha_bars)


def q_sample(x0, t, noise):
    ab = alpha_bars[t].view(-1, 1, 1, 1)
    return ab.sqrt() * x0 + (1.0 - ab).sqrt() * noise


# %% Model
def time_embedding(t, dim):
    half = dim // 2
    freqs = torch.exp(-math.log(10000.0) * torch.arange(half, device=t.device) / half)
    args = t.float()[:, None] * freqs[None, :]
    return torch.cat([args.sin(), args.cos()], dim=1)


class ResBlock(nn.Module):
    def __init__(self, c_in, c_out, t_dim):
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(8, c_in), nn.GroupNorm(8, c_out)
        self.conv1 = nn.Conv2d(c_in, c_out, 3, padding=1)
        self.conv2 = nn.Conv2d(c_out, c_out, 3, padding=1)
        self.time = nn.Linear(t_dim, c_out)
        self.skip = nn.Conv2d(c_in, c_out, 1) if c_in != c_out else nn.Identity()

    def forward(self, x, temb):
        h = self.conv1(F.silu(self.norm1(x)))
        h = h + self.time(temb)[:, :, None, None]
        h = self.conv2(F.silu(self.norm2(h)))
        return h + self.skip(x)


class UNet(nn.Module):
    def __init__(self, ch=64, t_dim=256):
        super().__init__()
        self.ch = ch
        self.time_mlp = nn.Sequential(nn.Linear(ch, t_dim), nn.SiLU(), nn.Linear(t_dim, t_dim), nn.SiLU())
        self.stem = nn.Conv2d(1, ch, 3, padding=1)
        widths = [ch, ch, 2 * ch, 2 * ch]
        self.down = nn.ModuleList([ResBlock(a, b, t_dim) for a, b in zip(widths[:-1], widths[1:])])
        self.mid = ResBlock(2 * ch, 2 * ch, t_dim)
        self.up = nn.ModuleList([ResBlock(a + b, b, t_dim) for a, b in [(2 * ch, 2 * ch), (2 * ch, 2 * ch), (2 * ch, ch)]])
        self.out = nn.Sequential(nn.GroupNorm(8, ch), nn.SiLU(), nn.Conv2d(ch, 1, 3, padding=1))

    def forward(self, x, t):
        temb = self.time_mlp(time_embedding(t, self.ch))
        h, skips = self.stem(x), []
        for block in self.down:
            h = block(h, temb)
            skips.append(h)
            h = F.avg_pool2d(h, 2)
        h = self.mid(h, temb)
        for block in self.up:
            h = F.interpolate(h, scale_factor=2.0, mode="nearest")
            h = block(torch.cat([h, skips.pop()], dim=1), temb)
        return self.out(h)


# %% Loss, EMA, sampling
def diffusion_loss(net, x0):
    t = torch.randint(0, T, (x0.size(0),), device=x0.device)
    noise = torch.randn_like(x0)
    return F.mse_loss(net(q_sample(x0, t, noise), t), noise)


@torch.no_grad()
def update_ema(ema, net):
    for pe, p in zip(ema.parameters(), net.parameters()):
        pe.mul_(EMA_DECAY).add_(p, alpha=1.0 - EMA_DECAY)


@torch.no_grad()
def sample(net, n):
    x = torch.randn(n, 1, 32, 32, device=device)
    for i in reversed(range(T)):
        eps = net(x, torch.full((n,), i, device=device))
        mean = (x - betas[i] / (1.0 - alpha_bars[i]).sqrt() * eps) / alphas[i].sqrt()
        x = mean + posterior_var[i].sqrt() * torch.randn_like(x) if i > 0 else mean
    return x.clamp(-1, 1)


@torch.no_grad()
def validate(net):
    with torch.random.fork_rng():
        torch.manual_seed(123)
        losses = [diffusion_loss(net, x.to(device)).item() for x, _ in val_loader]
    return sum(losses) / len(losses)


# %% Training
net = UNet().to(device)
ema = copy.deepcopy(net).eval().requires_grad_(False)
opt = torch.optim.AdamW(net.parameters(), lr=LR, weight_decay=1e-4)
for epoch in range(EPOCHS):
    net.train()
    running = 0.0
    for x, _ in train_loader:
        loss = diffusion_loss(net, x.to(device))
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        update_ema(ema, net)
        running += loss.item()
    print(f"epoch {epoch} train {running / len(train_loader):.4f} val (ema) {validate(ema):.4f}")
    save_image(sample(ema, 36) * 0.5 + 0.5, f"ddpm_{epoch:02d}.png", nrow=6)
    torch.save({"net": net.state_dict(), "ema": ema.state_dict(), "opt": opt.state_dict(), "epoch": epoch}, "ddpm.pt")
