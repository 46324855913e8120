import math
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(11)


class MDN(nn.Module):
    def __init__(self, k=5, h=48):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(1, h), nn.Tanh(), nn.Linear(h, h), nn.Tanh())
        self.pi = nn.Linear(h, k)
        self.mu = nn.Linear(h, k)
        self.sigma = nn.Linear(h, k)

    def forward(self, x):
        h = self.body(x)
        return torch.softmax(self.pi(h), -1), self.mu(h), torch.exp(self.sigma(h))


def nll(pi, mu, sigma, y):
    z = (y - mu) / sigma
    pdf = torch.exp(-0.5 * z ** 2) / (sigma * math.sqrt(2 * math.pi))
    lik = (pi * pdf).sum(-1)
    return -torch.log(lik).mean()


def make_data(n=2048):
    g = torch.Generator().manual_seed(5)
    y = torch.rand(n, 1, generator=g) * 2 - 1
    x = y + 0.3 * torch.sin(2 * math.pi * y) + 0.04 * torch.randn(n, 1, generator=g)
    y[1391] = 5.5
    return x, y


def main():
    x, y = make_data()
    loader = DataLoader(TensorDataset(x, y), batch_size=128, shuffle=True)
    net = MDN()
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    step = 0
    for epoch in range(25):
        for xb, yb in loader:
            loss = nll(*net(xb), yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
            step += 1
        print(f"epoch {epoch:2d} step {step:4d} nll {loss.item():.4f}")


if __name__ == "__main__":
    main()
