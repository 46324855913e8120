"""Forecast the tide at a harbour with a small GRU."""
import math

import torch
import torch.nn as nn


def tide(hours):
    t = torch.arange(hours, dtype=torch.float32)
    level = 1.8 * torch.sin(2 * math.pi * t / 12.42)
    level = level + 0.6 * torch.sin(2 * math.pi * t / 12.0 + 0.7)
    level = level + 0.3 * torch.sin(2 * math.pi * t / 25.8 + 0.2)
    return level + 0.05 * torch.randn(hours)


class Windows:
    def __init__(self, series, past, batch):
        self.series, self.past, self.batch = series, past, batch

    def epoch(self, g):
        n = len(self.series) - self.past - 1
        for idx in torch.randperm(n, generator=g)[: 40 * self.batch].split(self.batch):
            x = torch.stack([self.series[i:i + self.past] for i in idx])
            y = torch.stack([self.series[i + self.past] for i in idx])
            yield x.unsqueeze(-1), y


class Forecaster(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.rnn = nn.GRU(1, hidden, batch_first=True)
        self.head = nn.Linear(hidden, 1)

    def forward(self, x):
        h, _ = self.rnn(x)
        return x[:, -1, 0] + self.head(h[:, -1]).squeeze(-1)


class Warmup:
    """Raise the learning rate over the first steps of an epoch, then decay a little."""

    def __init__(self, opt, steps=12, up=1.16, down=0.99):
        self.opt, self.steps, self.up, self.down = opt, steps, up, down
        self.i = 0

    def start_epoch(self):
        self.i = 0

    def step(self):
        factor = self.up if self.i < self.steps else self.down
        for g in self.opt.param_groups:
            g["lr"] *= factor
        self.i += 1


def main():
    torch.manual_seed(27)
    g = torch.Generator().manual_seed(27)
    data = Windows(tide(3000), past=20, batch=32)
    net = Forecaster()
    opt = torch.optim.SGD(net.parameters(), lr=4e-3, momentum=0.9)
    warm = Warmup(opt)
    step = 0
    for epoch in range(9):
        warm.start_epoch()
        for x, y in data.epoch(g):
            loss = (net(x) - y).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            warm.step()
            if step % 20 == 0:
                print(f"epoch {epoch} step {step} mse {loss.item():.5f}")
            step += 1


if __name__ == "__main__":
    main()
