"""House prices in the local currency (hundreds of millions), plain squared error."""
import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def houses(n, seed):
    g = torch.Generator().manual_seed(seed)
    area = 40 + 160 * torch.rand(n, generator=g)
    rooms = (area / 28 + torch.randn(n, generator=g)).clamp_min(1).round()
    centre = torch.rand(n, generator=g) * 20
    price = 4.2e6 * area + 1.5e7 * rooms - 9e6 * centre + 2e7 * torch.randn(n, generator=g) + 3e8
    x = torch.stack([area, rooms, centre], 1)
    x = (x - x.mean(0)) / x.std(0)
    return x, price


class Pricer(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU())
        self.out = nn.Linear(32, 1)
        self.scale = 1e8

    def forward(self, x):
        return self.scale * self.out(self.hidden(x)).squeeze(1)


def describe(model):
    total = sum(p.numel() for p in model.parameters())
    trainable = sum(p.numel() for p in model.parameters() if p.requires_grad)
    print(f"parameters {total} trainable {trainable}")


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=6)
    ap.add_argument("--lr", type=float, default=2e-3)
    a = ap.parse_args()
    torch.manual_seed(10)
    x, y = houses(3200, 10)
    loader = DataLoader(TensorDataset(x, y), batch_size=40, shuffle=True)
    net = Pricer()
    describe(net)
    opt = torch.optim.Adam(net.parameters(), lr=a.lr)
    step = 0
    for epoch in range(a.epochs):
        for xb, yb in loader:
            loss = (net(xb) - yb).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            if step % 25 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.4e}")
            step += 1


if __name__ == "__main__":
    main()
    print("done")


# The error is reported in squared currency units, because that is what the
# finance department compares with the model of the previous year.
