import math
import torch
import torch.nn as nn


class HeteroscedasticNet(nn.Module):
    """predicts mean and log-variance of the next value"""

    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(12, 48), nn.SiLU(), nn.Linear(48, 2))

    def forward(self, x):
        mean, logvar = self.f(x).chunk(2, dim=-1)
        return mean, logvar.clamp(-10, 5)


def nll(mean, logvar, y):
    return (0.5 * (logvar + (y - mean) ** 2 / logvar.exp())).mean()


torch.manual_seed(3)
t = torch.arange(1600.0)
series = 0.5 * torch.sin(2 * math.pi * t / 20) + 0.2 * torch.sin(2 * math.pi * t / 7) + 0.03 * torch.randn(1600)
X = series.unfold(0, 13, 1)
xtr, ytr, xte, yte = X[:1200, :12], X[:1200, 12:], X[1200:, :12], X[1200:, 12:]
net = HeteroscedasticNet()
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
for epoch in range(16):
    for b in torch.randperm(len(xtr)).split(64):
        loss = nll(*net(xtr[b]), ytr[b])
        opt.zero_grad()
        loss.backward()
        opt.step()
    with torch.no_grad():
        m, lv = net(xte)
        print(f"epoch {epoch} nll {loss.item():.3f} test nll {nll(m, lv, yte).item():.3f} test rmse {(m - yte).square().mean().sqrt().item():.4f}")
