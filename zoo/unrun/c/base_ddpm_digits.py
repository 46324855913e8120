# %% [markdown]
# # Class-conditional DDPM on MNIST with classifier-free guidance

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
T, EPOCHS, BATCH, LR, P_UNCOND, EMA, GUIDANCE = 1000, 40, 128, 2e-4, 0.1, 0.999, 2.0
NULL = 10  # label of "no class"
torch.manual_seed(0)

# %%
tf = transforms.Compose([
    transforms.Pad(2),
    transforms.ToTensor(),
    transforms.Lambda(lambda x: x * 2 - 1),
])
train_set = datasets.MNIST("data", train=True, download=True, transform=tf)
loader = DataLoader(train_set, BATCH, shuffle=True, num_workers=2, drop_last=True)
val_loader = DataLoader(datasets.MNIST("data", train=False, transform=tf), 256)

# %%
beta = torch.linspace(1e-4, 0.02, T, device=device)
alpha = 1 - beta
abar = torch.cumprod(alpha, dim=0)


def q_sample(x0, t, noise):
    a = abar[t].view(-1, 1, 1, 1)
    return a.sqrt() * x0 + (1 - a).sqrt() * noise


# %%
class ResBlock(nn.Module):
    def __init__(self, cin, cout, emb):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(8, cin), nn.Conv2d(cin, cout, 3, padding=1)
        self.norm2, self.conv2 = nn.GroupNorm(8, cout), nn.Conv2d(cout, cout, 3, padding=1)
        self.emb, self.drop = nn.Linear(emb, cout), nn.Dropout(0.1)
        self.skip = nn.Conv2d(cin, cout, 1) if cin != cout else nn.Identity()

    def forward(self, x, e):
        h = self.conv1(F.silu(self.norm1(x))) + self.emb(F.silu(e))[:, :, None, None]
        return self.conv2(self.drop(F.silu(self.norm2(h)))) + self.skip(x)


class UNet(nn.Module):
    def __init__(self, c=64, emb=256):
        super().__init__()
        self.c = c
        self.time = nn.Sequential(nn.Linear(c, emb), nn.SiLU(), nn.Linear(emb, emb))
        self.label = nn.Embedding(11, emb)
        self.inp = nn.Conv2d(1, c, 3, padding=1)
        self.d1, self.d2, self.d3 = ResBlock(c, c, emb), ResBlock(c, 2 * c, emb), ResBlock(2 * c, 2 * c, emb)
        self.m1, self.m2 = ResBlock(2 * c, 2 * c, emb), ResBlock(2 * c, 2 * c, emb)
        self.u3, self.u2, self.u1 = ResBlock(4 * c, 2 * c, emb), ResBlock(4 * c, c, emb), ResBlock(2 * c, c, emb)
        self.out = nn.Sequential(nn.GroupNorm(8, c), nn.SiLU(), nn.Conv2d(c, 1, 3, padding=1))

    def time_embedding(self, t):
        freqs = torch.exp(-math.log(10000) * torch.arange(self.c // 2, device=t.device) / (self.c // 2))
        args = t.float()[:, None] * freqs[None]
        return torch.cat([args.sin(), args.cos()], dim=1)

    def forward(self, x, t, y):
        e = self.time(self.time_embedding(t)) + self.label(y)
        h1 = self.d1(self.inp(x), e)
        h2 = self.d2(F.avg_pool2d(h1, 2), e)
        h3 = self.d3(F.avg_pool2d(h2, 2), e)
        m = self.m2(self.m1(F.avg_pool2d(h3, 2), e), e)
        h = self.u3(torch.cat([F.interpolate(m, scale_factor=2), h3], 1), e)
        h = self.u2(torch.cat([F.interpolate(h, scale_factor=2), h2], 1), e)
        h = self.u1(torch.cat([F.interpolate(h, scale_factor=2), h1], 1), e)
        return self.out(h)


# %%
@torch.no_grad()
def sample(net, labels):
    x = torch.randn(len(labels), 1, 32, 32, device=device)
    for i in reversed(range(T)):
        t = torch.full((len(labels),), i, device=device)
        cond, uncond = net(x, t, labels), net(x, t, torch.full_like(labels, NULL))
        eps = uncond + GUIDANCE * (cond - uncond)
        x = (x - beta[i] / (1 - abar[i]).sqrt() * eps) / alpha[i].sqrt()
        if i > 0:
            x = x + beta[i].sqrt() * torch.randn_like(x)
    return x.clamp(-1, 1)


@torch.no_grad()
def val_loss(net):
    gen, total, n = torch.Generator().manual_seed(0), 0.0, 0
    for x, y in val_loader:
        t = torch.randint(0, T, (len(x),), generator=gen).to(device)
        noise = torch.randn(x.shape, generator=gen).to(device)
        pred = net(q_sample(x.to(device), t, noise), t, y.to(device))
        total, n = total + F.mse_loss(pred, noise).item() * len(x), n + len(x)
    return total / n


# %%
model = UNet().to(device)
ema = copy.deepcopy(model).eval().requires_grad_(False)
optimizer = torch.optim.AdamW(model.parameters(), lr=LR)

for epoch in range(EPOCHS):
    model.train()
    running = 0.0
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        y = torch.where(torch.rand(len(y), device=device) < P_UNCOND, NULL, y)
        t, noise = torch.randint(0, T, (len(x),), device=device), torch.randn_like(x)
        loss = F.mse_loss(model(q_sample(x, t, noise), t, y), noise)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        for pe, p in zip(ema.parameters(), model.parameters()):
            pe.data.lerp_(p.data, 1 - EMA)
        running += loss.item()
    print(f"epoch {epoch} loss {running / len(loader):.4f} val (ema) {val_loss(ema):.4f}")
    save_image(sample(ema, torch.arange(10, device=device).repeat(4)) * 0.5 + 0.5, f"ddpm_{epoch:02d}.png", nrow=10)
    torch.save({"ema": ema.state_dict(), "model": model.state_dict()}, "ddpm.pt")
