import argparse
import math

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def make_moons(n, gen):
    th = torch.rand(n, generator=gen) * math.pi
    upper = torch.rand(n, generator=gen) < 0.5
    x = torch.where(upper, th.cos(), 1 - th.cos())
    y = torch.where(upper, th.sin(), 0.5 - th.sin())
    pts = torch.stack([x, y], 1) + 0.07 * torch.randn(n, 2, generator=gen)
    return pts


class Coupling(nn.Module):
    def __init__(self, hidden, parity=0):
        super().__init__()
        self.parity = parity
        self.net = nn.Sequential(nn.Linear(1, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 2))

    def split(self, x):
        a, b = x[:, :1], x[:, 1:]
        return (a, b) if self.parity == 0 else (b, a)

    def join(self, a, b):
        return torch.cat([a, b] if self.parity == 0 else [b, a], dim=1)

    def params(self, a):
        s, t = self.net(a).chunk(2, dim=1)
        return 2.0 * torch.tanh(s / 2.0), t

    def forward(self, x):
        a, b = self.split(x)
        s, t = self.params(a)
        return self.join(a, b * s.exp() + t), s.sum(dim=1)

    def inverse(self, z):
        a, b = self.split(z)
        s, t = self.params(a)
        return self.join(a, (b - t) * (-s).exp())


class RealNVP(nn.Module):
    def __init__(self, n_layers, hidden):
        super().__init__()
        self.layers = nn.ModuleList([Coupling(hidden, parity=i % 2) for i in range(n_layers)])

    def forward(self, x):
        z, log_det = x, torch.zeros(x.size(0))
        for layer in self.layers:
            z, ld = layer(z)
            log_det = log_det + ld
        return z, log_det

    def nll(self, x):
        z, log_det = self(x)
        log_pz = -0.5 * (z ** 2).sum(1) - math.log(2 * math.pi)
        return -(log_pz + log_det).mean()

    @torch.no_grad()
    def sample(self, n):
        z = torch.randn(n, 2)
        for layer in reversed(self.layers):
            z = layer.inverse(z)
        return z


def energy_distance(a, b):
    return (2 * torch.cdist(a, b).mean() - torch.cdist(a, a).mean() - torch.cdist(b, b).mean()).item()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=21)
    ap.add_argument("--batch-size", type=int, default=200)
    ap.add_argument("--lr", type=float, default=5e-3)
    ap.add_argument("--layers", type=int, default=4)
    args = ap.parse_args()

    torch.manual_seed(0)
    gen = torch.Generator().manual_seed(1)
    train, val = make_moons(1600, gen), make_moons(500, gen)
    mu, sd = train.mean(0), train.std(0)
    train, val = (train - mu) / sd, (val - mu) / sd
    loader = DataLoader(TensorDataset(train), batch_size=args.batch_size, shuffle=True)

    flow = RealNVP(args.layers, 48)
    optimizer = torch.optim.Adam(flow.parameters(), lr=args.lr)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.9)

    for epoch in range(args.epochs):
        total = 0.0
        for (x,) in loader:
            loss = flow.nll(x)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * x.size(0)
        scheduler.step()
        if epoch % 3 == 2:
            with torch.no_grad():
                v = flow.nll(val).item()
            print(f"epoch {epoch + 1:3d} train nll {total / len(train):.4f} val nll {v:.4f}")

    print(f"energy distance between samples and held-out data: {energy_distance(flow.sample(500), val):.4f}")


if __name__ == "__main__":
    main()
