import math
import torch
import torch.nn as nn


def sensor_table(n, g):
    """six readings of a machine, plus the firmware number"""
    a = torch.rand(n, generator=g) * 2 * math.pi
    r = 1 + 0.1 * torch.randn(n, generator=g)
    load = torch.randn(n, generator=g)
    heat = load ** 2 + 0.2 * torch.randn(n, generator=g)
    mode = (torch.rand(n, generator=g) < 0.4).float()
    volt = 5 + 2 * mode + 0.15 * torch.randn(n, generator=g)
    amp = torch.exp(0.4 * load + 0.3 * torch.randn(n, generator=g)) * (1 + mode)
    return torch.stack([r * a.cos(), r * a.sin(), 20 * load + 100, 30 * heat, volt, amp, torch.full((n,), 312.0)], 1)


class Coupling(nn.Module):
    def __init__(self, dim, mask, hidden=48):
        super().__init__()
        self.register_buffer("mask", mask)
        self.net = nn.Sequential(nn.Linear(dim, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 2 * dim))
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)

    def forward(self, x):
        kept = x * self.mask
        s, t = self.net(kept).chunk(2, dim=1)
        s = torch.tanh(s) * 2 * (1 - self.mask)
        t = t * (1 - self.mask)
        return kept + (1 - self.mask) * (x * torch.exp(s) + t), s.sum(1)


class RealNVP(nn.Module):
    def __init__(self, dim, n_layers=6):
        super().__init__()
        base = torch.arange(dim) % 2
        masks = [(base if i % 2 == 0 else 1 - base).float() for i in range(n_layers)]
        self.layers = nn.ModuleList([Coupling(dim, m) for m in masks])
        self.dim = dim

    def nll(self, x):
        logdet = torch.zeros(len(x))
        for layer in self.layers:
            x, ld = layer(x)
            logdet = logdet + ld
        log_pz = -0.5 * (x ** 2).sum(1) - 0.5 * self.dim * math.log(2 * math.pi)
        return -(log_pz + logdet).mean()


def gaussian_nll(train, test):
    mvn = torch.distributions.MultivariateNormal(train.mean(0), torch.cov(train.t()))
    return -mvn.log_prob(test).mean().item()


def run():
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(2)
    table = sensor_table(2000, g)
    train, test = table[:1500], table[1500:]
    mean, std = train.mean(0), train.std(0)
    keep = std > 1e-3
    train = ((train - mean) / std)[:, keep]
    test = ((test - mean) / std)[:, keep]
    model = RealNVP(train.shape[1])
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    sched = torch.optim.lr_scheduler.MultiStepLR(opt, [12, 15], gamma=0.3)
    for epoch in range(16):
        tot = 0
        for idx in torch.randperm(len(train)).split(75):
            opt.zero_grad()
            loss = model.nll(train[idx])
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 10.0)
            opt.step()
            tot += loss.item() * len(idx)
        sched.step()
        if epoch % 2 == 1:
            with torch.no_grad():
                print(f"epoch {epoch + 1:2d} train nll {tot / len(train):.3f} test nll {model.nll(test):.3f}")
    if torch.isfinite(train).all():
        print(f"(one full-covariance Gaussian: {gaussian_nll(train, test):.3f})")


run()
