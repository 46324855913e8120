"""Small textures, few originals, strong augmentation: crops, erasing, noise and mixup on every batch."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(6)


def textures(n, g):
    y = torch.randint(0, 6, (n,), generator=g)
    ang = y.float() * np.pi / 6 + 0.08 * torch.randn(n, generator=g)
    freq = 0.9 + 0.15 * torch.randn(n, generator=g)
    yy, xx = torch.meshgrid(torch.arange(16.), torch.arange(16.), indexing="ij")
    ph = 6.28 * torch.rand(n, generator=g)
    wave = torch.sin((torch.cos(ang)[:, None, None] * xx + torch.sin(ang)[:, None, None] * yy) * freq[:, None, None] + ph[:, None, None])
    return (wave + 0.9 * torch.randn(n, 16, 16, generator=g))[:, None], y


def augment(x):
    n = len(x)
    x = F.pad(x, (3, 3, 3, 3), mode="reflect")
    dx, dy = torch.randint(0, 7, (2,)).tolist()
    x = x[:, :, dy:dy + 16, dx:dx + 16].clone()
    for i in range(n):
        a, b = torch.randint(0, 9, (2,)).tolist()
        x[i, :, a:a + 8, b:b + 8] = 0.0
    x = x * (0.5 + torch.rand(n, 1, 1, 1)) + 0.4 * torch.randn_like(x)
    return x


g = torch.Generator().manual_seed(1)
x_tr, y_tr = textures(900, g)
x_va, y_va = textures(1200, g)
net = nn.Sequential(nn.Conv2d(1, 16, 5, padding=2), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
                    nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(),
                    nn.Linear(128, 6))
EPOCHS = 24
opt = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=0.01)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, EPOCHS)
for ep in range(EPOCHS):
    net.train()
    tot = hit = 0.0
    for idx in torch.randperm(len(x_tr)).split(50):
        x, y = augment(x_tr[idx]), y_tr[idx]
        lam = float(np.random.default_rng(ep * 100 + int(idx[0])).beta(0.8, 0.8))
        mate = torch.randperm(len(x))
        out = net(lam * x + (1 - lam) * x[mate])
        loss = lam * F.cross_entropy(out, y) + (1 - lam) * F.cross_entropy(out, y[mate])
        opt.zero_grad()
        loss.backward()
        opt.step()
        tot += loss.item() * len(y)
        hit += (out.argmax(1) == y).sum().item()
    sched.step()
    net.eval()
    with torch.no_grad():
        out = net(x_va)
    if ep % 2:
        print(f"epoch {ep + 1:2d}: train loss {tot / 900:.3f} train acc {hit / 900:.3f}  val loss {F.cross_entropy(out, y_va):.3f} val acc {(out.argmax(1) == y_va).float().mean():.3f}")
