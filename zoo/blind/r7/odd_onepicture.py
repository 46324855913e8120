"""Fit one picture with a coordinate network. Memorising the picture is the task; there is no validation set."""
import math
import torch
import torch.nn as nn

torch.manual_seed(4)
torch.set_num_threads(1)

SIDE = 40
yy, xx = torch.meshgrid(torch.linspace(-1, 1, SIDE), torch.linspace(-1, 1, SIDE), indexing="ij")
picture = torch.stack([
    torch.sin(6 * xx) * torch.cos(5 * yy) * 0.5 + 0.5,
    ((xx ** 2 + yy ** 2) < 0.4).float() * 0.8 + 0.1,
    torch.exp(-8 * (xx - yy) ** 2),
], dim=-1).reshape(-1, 3)
coords = torch.stack([xx, yy], dim=-1).reshape(-1, 2)


class Fourier(nn.Module):
    def __init__(self, n=64, scale=2.5):
        super().__init__()
        self.register_buffer("B", torch.randn(2, n) * scale)

    def forward(self, x):
        a = math.pi * x @ self.B
        return torch.cat([a.sin(), a.cos()], dim=-1)


net = nn.Sequential(Fourier(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 3))
opt = torch.optim.Adam(net.parameters(), lr=4e-3)
STEPS = 400
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=STEPS)


def psnr(mse):
    return -10 * math.log10(mse)


for step in range(STEPS):
    # all pixels at once, the same ones in each step
    out = net(coords)
    loss = (out - picture).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    sched.step()
    if (step + 1) % 40 == 0:
        print(f"step {step + 1} mse {loss.item():.6f} psnr {psnr(loss.item()):.2f} dB")

with torch.no_grad():
    mse = (net(coords) - picture).pow(2).mean().item()
size_net = sum(p.numel() for p in net.parameters())
print(f"parameters {size_net} pixels {picture.numel()}")
print(f"final psnr {psnr(mse):.2f} dB")
