"""Denoising without clean pictures: input and target are two noisy shots of the same scene."""
import torch
import torch.nn as nn

torch.manual_seed(23)
SIGMA = 0.3


def scenes(n, s=16):
    lo = torch.rand(n, 1, 4, 4)
    return nn.functional.interpolate(lo, size=(s, s), mode="bilinear", align_corners=False)


class AutoEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv2d(1, 16, 4, 2, 1), nn.LeakyReLU(0.1), nn.Conv2d(16, 24, 4, 2, 1), nn.LeakyReLU(0.1))
        self.decoder = nn.Sequential(nn.ConvTranspose2d(24, 16, 4, 2, 1), nn.LeakyReLU(0.1), nn.ConvTranspose2d(16, 1, 4, 2, 1))

    def forward(self, x):
        return self.decoder(self.encoder(x))


net = AutoEncoder()
optim = torch.optim.Adam(net.parameters(), lr=4e-3)
plan = torch.optim.lr_scheduler.OneCycleLR(optim, max_lr=8e-3, total_steps=300)
held = scenes(200)
held_noisy = held + SIGMA * torch.randn_like(held)

for step in range(300):
    clean = scenes(32)
    shot_a = clean + SIGMA * torch.randn_like(clean)
    shot_b = clean + SIGMA * torch.randn_like(clean)
    loss = (net(shot_a) - shot_b).square().mean()
    optim.zero_grad()
    loss.backward()
    optim.step()
    plan.step()
    if step % 50 == 49:
        with torch.no_grad():
            err = (net(held_noisy) - held).square().mean().item()
        print(f"step {step + 1} loss {loss.item():.4f} error against the clean scenes {err:.4f} (noisy {SIGMA ** 2:.4f})")
