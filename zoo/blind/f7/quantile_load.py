"""Multi-quantile forecasting of household load, SGD with gradient accumulation."""
import argparse
import torch
import torch.nn as nn

QUANTILES = torch.tensor([0.1, 0.25, 0.5, 0.75, 0.9])


class LoadSeries:
    def __init__(self, n=6000, seed=3):
        g = torch.Generator().manual_seed(seed)
        t = torch.arange(n).float()
        base = 1.0 + 0.6 * torch.sin(2 * torch.pi * t / 24) + 0.3 * torch.sin(2 * torch.pi * t / 168)
        self.y = base + (0.1 + 0.1 * base.abs()) * torch.randn(n, generator=g)
        self.g = g

    def batch(self, size, window=48):
        i = torch.randint(0, len(self.y) - window - 1, (size,), generator=self.g)
        x = torch.stack([self.y[j:j + window] for j in i])
        return x, torch.stack([self.y[j + window] for j in i])


class Forecaster(nn.Module):
    def __init__(self, window=48, width=96):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(window, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, len(QUANTILES)))

    def forward(self, x):
        return self.f(x)


def pinball(pred, y):
    err = y.unsqueeze(1) - pred
    return torch.maximum(QUANTILES * err, (QUANTILES - 1) * err).sum(1).mean()


def micro_batches(step, switch):
    """Larger effective batches in the second half of training."""
    return 1 if step < switch else 16


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=320)
    ap.add_argument("--switch", type=int, default=200)
    ap.add_argument("--lr", type=float, default=0.02)
    args = ap.parse_args()
    torch.manual_seed(0)
    data, net = LoadSeries(), Forecaster()
    opt = torch.optim.SGD(net.parameters(), lr=args.lr, momentum=0.9)
    for step in range(args.steps):
        opt.zero_grad()
        k = micro_batches(step, args.switch)
        total = 0.0
        for _ in range(k):
            x, y = data.batch(16)
            loss = pinball(net(x), y)
            loss.backward()
            total += loss.item() / k
        opt.step()
        if step % 20 == 0:
            print(f"step {step:4d} micro {k:2d} pinball {total:.4f}")


if __name__ == "__main__":
    main()
