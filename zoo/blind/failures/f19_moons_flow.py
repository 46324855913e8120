import math
import torch
import torch.nn as nn

torch.manual_seed(13)


def moons(n):
    t = torch.rand(n) * math.pi
    up = torch.stack([torch.cos(t), torch.sin(t)], 1)
    lo = torch.stack([1 - torch.cos(t), 0.5 - torch.sin(t)], 1)
    pick = (torch.rand(n, 1) < 0.5).float()
    return pick * up + (1 - pick) * lo + 0.03 * torch.randn(n, 2)


class Coupling(nn.Module):
    def __init__(self, flip):
        super().__init__()
        self.flip = flip
        self.net = nn.Sequential(nn.Linear(1, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 2))

    def forward(self, x):
        a, b = x.chunk(2, 1)
        if self.flip:
            a, b = b, a
        s, t = self.net(a).chunk(2, 1)
        b = b * torch.exp(s) + t
        out = torch.cat([b, a], 1) if self.flip else torch.cat([a, b], 1)
        return out, s.squeeze(1)


class Flow(nn.Module):
    def __init__(self, depth=6):
        super().__init__()
        self.steps = nn.ModuleList([Coupling(i % 2 == 1) for i in range(depth)])

    def log_prob(self, x):
        logdet = 0.0
        for st in self.steps:
            x, ld = st(x)
            logdet = logdet + ld
        return -0.5 * (x ** 2).sum(1) - math.log(2 * math.pi) + logdet


flow = Flow()
optim = torch.optim.Adam(flow.parameters(), lr=5e-4)
sched = torch.optim.lr_scheduler.LambdaLR(optim, lambda k: 1.0 + 239.0 * min(k, 200) / 200)
for it in range(260):
    loss = -flow.log_prob(moons(128)).mean()
    optim.zero_grad()
    loss.backward()
    optim.step()
    sched.step()
    if it % 10 == 0:
        print(f"{it:4d} nll {loss.item():.4f} lr {sched.get_last_lr()[0]:.5f}")
