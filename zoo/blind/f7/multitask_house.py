import torch
import torch.nn as nn
import torch.nn.functional as F


class Houses:
    """Features of a house; targets: price (noisy), area class (easy), age (noise-free function)."""

    def __init__(self, n=5000, seed=0):
        g = torch.Generator().manual_seed(seed)
        self.x = torch.randn(n, 12, generator=g)
        w = torch.randn(12, 2, generator=g) / 3
        self.price = (self.x @ w[:, 0] + 0.3 * torch.randn(n, generator=g))
        self.age = self.x @ w[:, 1]
        self.kind = (self.x[:, :3].sum(1) > 0).long()
        self.g = g

    def batch(self, n):
        i = torch.randint(0, len(self.x), (n,), generator=self.g)
        return self.x[i], self.price[i], self.age[i], self.kind[i]


class MultiHead(nn.Module):
    def __init__(self, d=12, h=64):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(d, h), nn.SiLU(), nn.Linear(h, h), nn.SiLU())
        self.price, self.kind = nn.Linear(h, 1), nn.Linear(h, 2)
        self.age = nn.Linear(d, 1)

    def forward(self, x):
        h = self.trunk(x)
        return self.price(h).squeeze(-1), self.age(x).squeeze(-1), self.kind(h)


class TaskBalance(nn.Module):
    """Homoscedastic-uncertainty weighting with one noise scale per task."""

    def __init__(self, tasks):
        super().__init__()
        self.sigma = nn.Parameter(torch.ones(tasks))

    def forward(self, losses):
        losses = torch.stack(losses)
        return (losses / (2 * self.sigma ** 2) + torch.log(self.sigma)).sum()


def main(steps=450, batch=64):
    torch.manual_seed(0)
    data, net, balance = Houses(), MultiHead(), TaskBalance(3)
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    balance_opt = torch.optim.SGD(balance.parameters(), lr=2e-3)
    for step in range(steps):
        x, price, age, kind = data.batch(batch)
        p, a, k = net(x)
        parts = [F.mse_loss(p, price), F.mse_loss(a, age), F.cross_entropy(k, kind)]
        loss = balance(parts)
        opt.zero_grad()
        balance_opt.zero_grad()
        loss.backward()
        opt.step()
        balance_opt.step()
        if step % 25 == 0:
            vals = " ".join(f"{v.item():.4f}" for v in parts)
            print(f"step {step:4d} total {loss.item():.4f} parts {vals}")


if __name__ == "__main__":
    main()
