"""Normalising flow. Negative log likelihood becomes strongly negative as data are narrow."""
import math
import torch
import torch.nn as nn

torch.manual_seed(3)
DIM = 6
A = torch.randn(DIM, DIM) * 0.02


def sample(n):
    z = torch.randn(n, DIM)
    z[:, 1] = 0.3 * z[:, 1] + z[:, 0] ** 2
    return z @ A


class Coupling(nn.Module):
    def __init__(self, flip):
        super().__init__()
        self.flip = flip
        self.net = nn.Sequential(nn.Linear(DIM // 2, 64), nn.SiLU(), nn.Linear(64, DIM))
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)
        self.mix = nn.Parameter(torch.eye(DIM) + 0.05 * torch.randn(DIM, DIM))

    def forward(self, x):
        x = x @ self.mix
        ld = torch.linalg.slogdet(self.mix)[1]
        a, b = x.chunk(2, 1)
        if self.flip:
            a, b = b, a
        s, t = self.net(a).chunk(2, 1)
        s = 2 * torch.tanh(s)
        b = b * s.exp() + t
        return torch.cat([a, b], 1), ld + s.sum(1)


class Flow(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Coupling(i % 2 == 1) for i in range(4)])
        self.log_scale = nn.Parameter(torch.zeros(DIM))

    def nll(self, x):
        z = (x / 0.05) * self.log_scale.exp()
        ld = self.log_scale.sum() - DIM * math.log(0.05)
        for l in self.layers:
            z, d = l(z)
            ld = ld + d
        return (0.5 * (z ** 2).sum(1) + 0.5 * DIM * math.log(2 * math.pi) - ld).mean()


train, val = sample(8000), sample(1000)
flow = Flow()
opt = torch.optim.Adam(flow.parameters(), lr=3e-3)
sch = torch.optim.lr_scheduler.OneCycleLR(opt, 6e-3, total_steps=31 * 12)
cov = torch.cov(train.T)
gauss = 0.5 * DIM * (1 + math.log(2 * math.pi)) + 0.5 * torch.logdet(cov)
for ep in range(12):
    p = torch.randperm(8000)
    for i in range(31):
        loss = flow.nll(train[p[i * 256:(i + 1) * 256]])
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(flow.parameters(), 5.0)
        opt.step()
        sch.step()
    with torch.no_grad():
        v = flow.nll(val).item()
    print(f"epoch {ep} train nll {loss.item():.3f} val nll {v:.3f}")
print(f"val nll {v:.3f}; best gaussian {gauss.item():.3f}")
