"""Multi-output sensor regression with missing readings stored as NaN."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def table(n=6000, seed=0):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 10, generator=g)
    y = torch.stack([x[:, 0] * x[:, 1], x[:, 2].abs(), x[:, 3] - x[:, 4]], 1)
    x[torch.rand(x.shape, generator=g) < 0.05] = float("nan")
    y[torch.rand(y.shape, generator=g) < 0.2] = float("nan")
    return x, y


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 3))

    def forward(self, x):
        gap = torch.isnan(x)
        return self.f(torch.cat([torch.nan_to_num(x), gap.float()], 1))


def main():
    torch.manual_seed(0)
    x, y = table()
    net = Net()
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    step = 0
    for epoch in range(4):
        for xb, yb in DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True):
            seen = ~torch.isnan(yb)
            pred = net(xb)
            loss = ((pred[seen] - yb[seen]) ** 2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            if step % 25 == 0:
                print(f"step {step} mse {loss.item():.4f} labels {int(seen.sum())}")
            step += 1


if __name__ == "__main__":
    main()
