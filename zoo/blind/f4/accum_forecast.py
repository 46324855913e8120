import torch
import torch.nn as nn

torch.manual_seed(43)


class Config:
    lr = 0.06
    micro = 16
    updates = 200
    hidden = 32

    @staticmethod
    def accumulate(update):
        return 1 if update < 120 else 24      # larger effective batch for the second part


def windows(n, g):
    ph = torch.rand(n, 1, generator=g) * 6.28
    fr = 0.2 + 0.3 * torch.rand(n, 1, generator=g)
    t = torch.arange(21.).unsqueeze(0)
    s = torch.sin(fr * t + ph) + 0.5 * torch.cos(2.1 * fr * t) + 0.05 * torch.randn(n, 21, generator=g)
    return s[:, :20], s[:, 20:]


class Trainer:
    def __init__(self, cfg):
        self.cfg = cfg
        self.g = torch.Generator().manual_seed(0)
        self.net = nn.Sequential(nn.Linear(20, cfg.hidden), nn.ReLU(), nn.Linear(cfg.hidden, cfg.hidden),
                                 nn.ReLU(), nn.Linear(cfg.hidden, 1))
        self.opt = torch.optim.SGD(self.net.parameters(), lr=cfg.lr, momentum=0.9)

    def update(self, u):
        total = 0.0
        self.opt.zero_grad()
        k = self.cfg.accumulate(u)
        for _ in range(k):
            x, y = windows(self.cfg.micro, self.g)
            loss = ((self.net(x) - y) ** 2).mean()
            loss.backward()
            total += loss.item()
        self.opt.step()
        return total / k

    def fit(self):
        for u in range(self.cfg.updates):
            l = self.update(u)
            if u % 10 == 0:
                print(f"update {u}: mse {l:.5f}")


Trainer(Config).fit()
