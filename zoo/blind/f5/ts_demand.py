"""Day-ahead forecast of household electricity demand with a GRU.

The readings are walked through in time order, as they arrive."""
import math

import torch
import torch.nn as nn

torch.manual_seed(4)
torch.set_num_threads(1)

HOUSES, HOURS = 48, 24 * 220
CONTEXT, HORIZON = 48, 24
LAMBDA = 0.3


def make_readings():
    g = torch.Generator().manual_seed(17)
    t = torch.arange(HOURS).float()
    base = 0.4 + 1.2 * torch.rand(HOUSES, 1, generator=g)
    phase = torch.randn(HOUSES, 1, generator=g) * 0.6
    daily = 1.0 + 0.5 * torch.sin(2 * math.pi * t / 24 + phase)
    weekly = 1.0 + 0.15 * torch.sin(2 * math.pi * t / 168)
    kwh = base * daily * weekly * torch.exp(0.1 * torch.randn(HOUSES, HOURS, generator=g))
    # two houses get solar panels in summer and feed into the grid at noon
    hour = torch.arange(HOURS) % 24
    sunny = (hour >= 11) & (hour <= 14) & (torch.arange(HOURS) > 24 * 130)
    kwh[7, sunny] -= 1.9
    kwh[31, sunny] -= 1.4
    return kwh


class Forecaster(nn.Module):
    def __init__(self, hidden=40):
        super().__init__()
        self.gru = nn.GRU(3, hidden, batch_first=True)
        self.head = nn.Linear(hidden, HORIZON)

    def forward(self, x):
        out, _ = self.gru(x)
        return self.head(out[:, -1])


def variance_stabilise(kwh):
    """Box-Cox"""
    return (kwh.pow(LAMBDA) - 1.0) / LAMBDA


def features(window, start):
    hours = torch.arange(start, start + CONTEXT).float() % 24
    ang = 2 * math.pi * hours / 24
    clock = torch.stack([ang.sin(), ang.cos()], -1).expand(HOUSES, -1, -1)
    return torch.cat([window.unsqueeze(-1), clock], -1)


def main():
    kwh = make_readings()
    net = Forecaster()
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    step = 0
    start = 0
    while start + CONTEXT + HORIZON <= HOURS:
        seen = variance_stabilise(kwh[:, start:start + CONTEXT])
        future = variance_stabilise(kwh[:, start + CONTEXT:start + CONTEXT + HORIZON])
        pred = net(features(seen, start))
        loss = (pred - future).abs().mean()
        opt.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        if step % 20 == 0:
            print(f"day {start / 24:6.1f} step {step} mae {loss.item():.4f}")
        step += 1
        start += 12
    print("finished", step)


if __name__ == "__main__":
    main()
