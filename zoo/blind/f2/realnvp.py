import torch
import torch.nn as nn


class Coupling(nn.Module):
    def __init__(self, dim, hidden, flip):
        super().__init__()
        self.flip = flip
        self.net = nn.Sequential(nn.Linear(dim // 2, hidden), nn.ReLU(), nn.Linear(hidden, dim))

    def forward(self, x):
        a, b = x.chunk(2, 1)
        if self.flip:
            a, b = b, a
        s, t = self.net(a).chunk(2, 1)
        b = b * torch.exp(s) + t
        out = torch.cat([b, a], 1) if self.flip else torch.cat([a, b], 1)
        return out, s.sum(1)


class Flow(nn.Module):
    def __init__(self, dim=4, hidden=48, n=6):
        super().__init__()
        self.layers = nn.ModuleList(Coupling(dim, hidden, i % 2 == 1) for i in range(n))

    def log_prob(self, x):
        logdet = torch.zeros(x.size(0))
        for layer in self.layers:
            x, ld = layer(x)
            logdet = logdet + ld
        base = -0.5 * (x ** 2 + 1.8378770664).sum(1)
        return base + logdet


def sample_data(n, gen):
    k = torch.randint(0, 4, (n,), generator=gen).float()
    ang = k * 1.5707963
    c = torch.stack([ang.cos(), ang.sin(), (2 * ang).cos(), k / 4], 1)
    return c + 0.15 * torch.randn(n, 4, generator=gen)


def main():
    torch.manual_seed(1)
    gen = torch.Generator().manual_seed(5)
    flow = Flow()
    opt = torch.optim.SGD(flow.parameters(), lr=4e-4, momentum=0.9)
    sched = torch.optim.lr_scheduler.MultiStepLR(opt, milestones=[140, 220], gamma=10)
    for step in range(300):
        x = sample_data(128, gen)
        loss = -flow.log_prob(x).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        if step % 20 == 0:
            print(f"step {step} nll {loss.item():.4f} lr {opt.param_groups[0]['lr']:.4g}")


main()
