"""Pure-premium regression on insurance policies with a square-root variance-stabilised residual."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def policies(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 9, generator=g)
    rate = torch.exp(0.4 * x[:, 0] - 0.3 * x[:, 1] + 0.2 * x[:, 2] * x[:, 3])
    count = torch.poisson(rate, generator=g)
    size = 0.5 + torch.rand(n, generator=g)
    tenure = torch.rand(n, generator=g)
    tenure[torch.rand(n, generator=g) < 0.0002] = 0.0
    return x, tenure, count * size * tenure


class Premium(nn.Module):
    def __init__(self, d=9):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(d, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, x, tenure):
        rate = nn.functional.softplus(self.f(x)).squeeze(-1)
        return rate * tenure


def stabilised(pred, y):
    """Residual of square roots where exposure exists, nothing elsewhere."""
    root = torch.where(pred > 0, torch.sqrt(pred), torch.zeros_like(pred))
    return ((root - torch.sqrt(y)) ** 2).mean()


def main(batch=40, lr=2e-3):
    torch.manual_seed(0)
    x, tenure, y = policies(15000, seed=9)
    loader = DataLoader(TensorDataset(x, tenure, y), batch_size=batch)
    net = Premium()
    opt = torch.optim.Adam(net.parameters(), lr=lr)
    avg = None
    for step, (xb, tb, yb) in enumerate(loader):
        loss = stabilised(net(xb, tb), yb)
        opt.zero_grad()
        loss.backward()
        opt.step()
        avg = loss.item() if avg is None else 0.95 * avg + 0.05 * loss.item()
        if step % 25 == 0:
            print(f"batch {step:4d} residual {avg:.4f}")


if __name__ == "__main__":
    main()
