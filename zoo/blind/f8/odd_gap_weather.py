"""Temperature forecasting from stations with many gaps."""
import math

import torch
import torch.nn as nn


def stations(hours, count, g):
    t = torch.arange(hours).float()
    base = 10 + 6 * torch.sin(2 * math.pi * t / 24)
    off = torch.randn(count, 1, generator=g) * 2
    x = base + off + 0.5 * torch.randn(count, hours, generator=g)
    gaps = torch.rand(count, hours, generator=g) < 0.2
    x[gaps] = float("nan")
    x[3, 500:560] = float("nan")
    return x


def fill(x):
    ok = torch.isfinite(x)
    return torch.where(ok, x, torch.zeros_like(x)), ok.float()


class Forecaster(nn.Module):
    def __init__(self, past, ahead):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(2 * past, 64), nn.GELU(), nn.Linear(64, ahead))

    def forward(self, x, ok):
        return self.f(torch.cat([x, ok], -1))


def masked_mae(pred, target):
    goal, ok = fill(target)
    return ((pred - goal).abs() * ok).sum() / ok.sum().clamp_min(1)


def main():
    torch.manual_seed(52)
    g = torch.Generator().manual_seed(52)
    series = (stations(1500, 12, g) - 10) / 5
    past, ahead = 36, 6
    net = Forecaster(past, ahead)
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    print("share of missing values", torch.isnan(series).float().mean().item())
    for step in range(500):
        s = torch.randint(0, 12, (32,), generator=g).tolist()
        at = torch.randint(0, 1500 - past - ahead, (32,), generator=g).tolist()
        win = torch.stack([series[i, a:a + past + ahead] for i, a in zip(s, at)])
        x, ok = fill(win[:, :past])
        loss = masked_mae(net(x, ok), win[:, past:])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 25 == 0:
            print(f"step {step:4d} mae {loss.item():.4f} raw mean {win.mean().item():.2f}")


if __name__ == "__main__":
    main()
