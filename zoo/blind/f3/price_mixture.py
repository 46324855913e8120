import math
import torch
import torch.nn as nn


class MixtureHead(nn.Module):
    def __init__(self, d_in, k=5):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(d_in, 40), nn.Tanh())
        self.pi = nn.Linear(40, k)
        self.mu = nn.Linear(40, k)
        self.log_sigma = nn.Linear(40, k)

    def forward(self, x):
        h = self.net(x)
        return torch.softmax(self.pi(h), 1), self.mu(h), self.log_sigma(h).clamp(-3, 2).exp()


def neg_log_likelihood(params, y):
    w, mu, sigma = params
    comp = torch.exp(-0.5 * ((y.unsqueeze(1) - mu) / sigma) ** 2) / (sigma * math.sqrt(2 * math.pi))
    return -torch.log((w * comp).sum(dim=1)).mean()


def houses(n=6400):
    g = torch.Generator().manual_seed(8)
    x = torch.randn(n, 6, generator=g)
    mode = (torch.rand(n, generator=g) < 0.4).float()
    y = x[:, 0] * (2 * mode - 1) + 0.3 * x[:, 1] + 0.2 * torch.randn(n, generator=g)
    y[3702] = 250.0
    return x, y


def batches(x, y, size):
    for s in range(0, len(x), size):
        yield x[s:s + size], y[s:s + size]


torch.manual_seed(8)
x, y = houses()
model = MixtureHead(6)
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
seen = 0
for xb, yb in batches(x, y, 32):
    opt.zero_grad()
    loss = neg_log_likelihood(model(xb), yb)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    opt.step()
    seen += len(xb)
    if seen % 800 == 0:
        print(f"{seen} rows nll {loss.item():.4f}")
