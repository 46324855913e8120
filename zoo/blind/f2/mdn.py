import math
import torch
import torch.nn as nn

torch.manual_seed(29)


class MDN(nn.Module):
    def __init__(self, k=4):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh())
        self.pi = nn.Linear(32, k)
        self.mu = nn.Linear(32, k)
        self.ls = nn.Linear(32, k)

    def forward(self, x):
        h = self.trunk(x)
        return torch.softmax(self.pi(h), 1), self.mu(h), torch.exp(self.ls(h))


def mixture_nll(pi, mu, sigma, y):
    comp = torch.exp(-0.5 * ((y - mu) / sigma) ** 2) / (sigma * math.sqrt(2 * math.pi))
    density = (pi * comp).sum(1)
    return -torch.log(density).mean()


# inverse of y -> y + 0.3 sin(2 pi y), multi-valued; readings from a log file
y = torch.rand(6000, 1)
x = y + 0.3 * torch.sin(2 * math.pi * y) + 0.02 * torch.randn(6000, 1)
y[4555] = 55.0
model = MDN()
opt = torch.optim.Adam(model.parameters(), lr=5e-3)
total = 0.0
for step, (xb, yb) in enumerate(zip(x.split(30), y.split(30))):
    loss = mixture_nll(*model(xb), yb)
    opt.zero_grad()
    loss.backward()
    opt.step()
    total += loss.item()
    if (step + 1) % 20 == 0:
        print(f"step {step + 1} nll {total / 20:.4f}")
        total = 0.0
