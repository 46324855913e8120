import math
import torch
import torch.nn as nn
from torch.utils.data import TensorDataset, DataLoader


class MDN(nn.Module):
    """Gaussian mixture for travel time given hour and distance."""

    def __init__(self, k=4):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh())
        self.pi = nn.Linear(32, k)
        self.mu = nn.Linear(32, k)
        self.log_sigma = nn.Linear(32, k)

    def forward(self, x):
        h = self.body(x)
        return torch.softmax(self.pi(h), -1), self.mu(h), torch.exp(self.log_sigma(h))


def mdn_loss(pi, mu, sigma, y):
    z = (y[:, None] - mu) / sigma
    density = torch.exp(-0.5 * z ** 2) / (sigma * math.sqrt(2 * math.pi))
    return -torch.log((pi * density).sum(-1)).mean()


def trips(n):
    g = torch.Generator().manual_seed(77)
    hour = torch.rand(n, generator=g) * 2 - 1
    dist = torch.rand(n, generator=g) * 2 - 1
    jam = (torch.rand(n, generator=g) < 0.3).float()
    time = 1 + dist + jam * (0.8 + 0.5 * hour) + 0.08 * torch.randn(n, generator=g)
    time[811] = 61.0
    return torch.stack([hour, dist], 1), time


x, y = trips(1500)
torch.manual_seed(0)
loader = DataLoader(TensorDataset(x, y), batch_size=25, shuffle=False)
model = MDN()
opt = torch.optim.Adam(model.parameters(), lr=4e-3)
n = 0
for epoch in range(3):
    for xb, yb in loader:
        loss = mdn_loss(*model(xb), yb)
        opt.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        opt.step()
        n += 1
        if n % 10 == 0:
            print(f"[{epoch}] {n:4d} nll {loss.item():+.4f}")
