"""RealNVP-style flow on small 4x4 intensity patches, trained by maximum likelihood."""
import argparse
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


class Coupling(nn.Module):
    def __init__(self, dim, flip, hidden=64):
        super().__init__()
        self.flip, self.half = flip, dim // 2
        self.net = nn.Sequential(nn.Linear(self.half, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh(), nn.Linear(hidden, dim))
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)

    def forward(self, x):
        a, b = x[:, :self.half], x[:, self.half:]
        if self.flip:
            a, b = b, a
        s, t = self.net(a).chunk(2, 1)
        s = torch.tanh(s)
        b = b * torch.exp(s) + t
        return (torch.cat([b, a], 1) if self.flip else torch.cat([a, b], 1)), s.sum(1)


class Flow(nn.Module):
    def __init__(self, dim, blocks=4):
        super().__init__()
        self.blocks = nn.ModuleList(Coupling(dim, i % 2 == 1) for i in range(blocks))

    def log_prob(self, x):
        y = torch.logit(x)
        logdet = (F.softplus(y) + F.softplus(-y)).sum(1)
        for block in self.blocks:
            y, ld = block(y)
            logdet = logdet + ld
        base = -0.5 * (y ** 2).sum(1) - 0.5 * y.size(1) * math.log(2 * math.pi)
        return base + logdet


def camera_patches(n, gen):
    grid = torch.linspace(-1, 1, 4)
    yy, xx = torch.meshgrid(grid, grid, indexing="ij")
    gx, gy, lift = torch.randn(3, n, 1, 1, generator=gen).unbind(0)
    img = 0.45 + 0.12 * lift + 0.06 * (gx * xx + gy * yy)
    img = img + 0.02 * torch.randn(n, 4, 4, generator=gen)
    return img.clamp(0.004, 1.0).flatten(1)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=400)
    p.add_argument("--batch", type=int, default=48)
    p.add_argument("--seed", type=int, default=0)
    a = p.parse_args()
    torch.manual_seed(a.seed)
    gen = torch.Generator().manual_seed(a.seed + 40)
    flow = Flow(16)
    opt = torch.optim.Adam(flow.parameters(), lr=1e-3)
    for step in range(a.steps):
        x = camera_patches(a.batch, gen)
        nll = -flow.log_prob(x).mean()
        opt.zero_grad()
        nll.backward()
        nn.utils.clip_grad_norm_(flow.parameters(), 50.0)
        opt.step()
        if step % 20 == 0:
            print(f"[{step}] bits/dim {nll.item() / (16 * math.log(2)):.4f}")


if __name__ == "__main__":
    main()
