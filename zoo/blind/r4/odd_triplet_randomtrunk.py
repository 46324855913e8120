"""Triplets on a projection only: the trunk is a fixed random feature map on purpose."""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


class RandomFeatures(nn.Module):
    """random Fourier features, never trained"""
    def __init__(self, d_in, d_out, gamma):
        super().__init__()
        self.lin = nn.Linear(d_in, d_out)
        nn.init.normal_(self.lin.weight, std=gamma)
        nn.init.uniform_(self.lin.bias, 0, 2 * math.pi)
        for p in self.parameters():
            p.requires_grad_(False)

    def forward(self, x):
        return torch.cos(self.lin(x)) * math.sqrt(2.0)


def data(n, g):
    y = torch.randint(0, 10, (n,), generator=g)
    a = y * 2 * math.pi / 10 + 0.08 * torch.randn(n, generator=g)
    sig = torch.stack([a.cos(), a.sin()], 1) * 1.5
    return torch.cat([sig, torch.randn(n, 4, generator=g)], 1), y


def main():
    torch.manual_seed(1)
    g = torch.Generator().manual_seed(1)
    x, y = data(800, g)
    qx, qy = data(200, g)
    trunk = RandomFeatures(6, 256, 0.3).eval()
    proj = nn.Linear(256, 8, bias=False)
    opt = torch.optim.SGD(proj.parameters(), lr=0.2, momentum=0.9)
    with torch.no_grad():
        fx, fq = trunk(x) / 16, trunk(qx) / 16
    for step in range(1, 501):
        idx = torch.randperm(len(x))[:80]
        e = F.normalize(proj(fx[idx]), dim=1)
        sim, same = e @ e.t(), y[idx][:, None] == y[idx][None]
        pos = sim.masked_fill(~same, 2).min(1).values
        semi = sim.masked_fill(same, -2)
        semi = torch.where(semi < pos[:, None], semi, torch.full_like(semi, -2)).max(1).values
        loss = F.relu(semi - pos + 0.2).sum() / 80
        loss.backward()
        opt.step()
        proj.zero_grad()
        if step % 100 == 0:
            with torch.no_grad():
                hit = y[torch.cdist(F.normalize(proj(fq), dim=1), F.normalize(proj(fx), dim=1)).argmin(1)] == qy
            raw = y[torch.cdist(qx, x).argmin(1)] == qy
            print(f"step {step} loss {loss.item():.4f} recall@1 {hit.float().mean():.3f} (raw inputs {raw.float().mean():.3f})")


main()
