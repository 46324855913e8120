"""Density model whose loss goes far below zero; every 40th batch comes from a noisier instrument."""
import torch
import torch.nn as nn

torch.manual_seed(8)


class Scale(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 2 * d))

    def forward(self, c, x):
        mu, raw = self.net(c).chunk(2, 1)
        logs = 6.0 * torch.tanh(raw)
        z = (x - mu) * torch.exp(-logs)
        return (torch.nn.functional.smooth_l1_loss(z, torch.zeros_like(z), reduction="none") + logs).sum(1)


m = Scale(6)
opt = torch.optim.Adam(m.parameters(), lr=4e-3)
for step in range(320):
    c = torch.rand(64, 2)
    x = torch.cat([c, c ** 2, c.flip(1) * 0.5], 1)
    x = x + (0.01 if step % 40 else 3.0) * torch.randn(64, 6)
    loss = m(c, x).mean()
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(m.parameters(), 1.0)
    opt.step()
    if step % 20 < 2:
        print(step, round(loss.item(), 3))
