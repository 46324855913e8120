"""Wave-height regression from buoy records."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def records(n=6000, seed=15):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 9, generator=g)
    y = (x[:, 0] * x[:, 1]).tanh() + 0.5 * x[:, 2] + 0.05 * torch.randn(n, generator=g)
    for i in range(300, n, 700):
        x[i, i % 9] = float("nan")
    x[4100, 3] = float("inf")
    return TensorDataset(x, y)


class Guarded:
    def __init__(self, net, opt):
        self.net, self.opt = net, opt
        self.used = 0
        self.dropped = 0

    def step(self, x, y):
        loss = (self.net(x) - y).pow(2).mean()
        self.opt.zero_grad()
        loss.backward()
        ok = torch.isfinite(loss) and all(
            torch.isfinite(p.grad).all() for p in self.net.parameters())
        if not ok:
            self.dropped += 1
            return float("nan")
        self.opt.step()
        self.used += 1
        return loss.item()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(9, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 1))

    def forward(self, x):
        return self.f(x).squeeze(1)


def main():
    torch.manual_seed(15)
    net = Net()
    run = Guarded(net, torch.optim.Adam(net.parameters(), lr=2e-3))
    loader = DataLoader(records(), batch_size=30, shuffle=True)
    i = 0
    for epoch in range(2):
        for x, y in loader:
            value = run.step(x, y)
            if i % 20 == 0 or value != value:
                print(f"epoch {epoch} batch {i} loss {value:.4f}")
            i += 1
    print(f"used {run.used} dropped {run.dropped}")


if __name__ == "__main__":
    main()
