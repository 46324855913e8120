"""Row-by-row digit classifier."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


def prototypes(g):
    return (torch.rand(10, 8, 8, generator=g) > 0.55).float()


def digits(n, protos, g):
    y = torch.randint(0, 10, (n,), generator=g)
    x = protos[y] + 0.45 * torch.randn(n, 8, 8, generator=g)
    stray = torch.rand(n, generator=g) < 0.1
    y = torch.where(stray, torch.randint(0, 10, (n,), generator=g), y)
    return x, y


class RowNet(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.rows = nn.Linear(8, hidden)
        self.mix = nn.Linear(8 * hidden, 64)
        self.out = nn.Linear(64, 10)

    def forward(self, x):
        h = torch.tanh(self.rows(x)).flatten(1)
        return self.out(F.relu(self.mix(h)))


class MomentumRamp:
    def __init__(self, optimizer, begin, per_step):
        self.optimizer = optimizer
        self.current = begin
        self.per_step = per_step

    def step(self):
        self.current += self.per_step
        for group in self.optimizer.param_groups:
            group["momentum"] = self.current


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=600)
    p.add_argument("--lr", type=float, default=0.02)
    p.add_argument("--begin", type=float, default=0.5)
    p.add_argument("--per-step", type=float, default=0.0014)
    return p.parse_args()


def main(a):
    torch.manual_seed(9)
    g = torch.Generator().manual_seed(9)
    protos = prototypes(g)
    net = RowNet(12)
    opt = torch.optim.SGD(net.parameters(), lr=a.lr, momentum=a.begin)
    ramp = MomentumRamp(opt, a.begin, a.per_step)
    for step in range(a.steps):
        x, y = digits(64, protos, g)
        logits = net(x)
        loss = F.cross_entropy(logits, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        ramp.step()
        if step % 25 == 0:
            acc = (logits.argmax(1) == y).float().mean().item()
            print(f"{step:4d} loss {loss.item():.4f} acc {acc:.2f}")


if __name__ == "__main__":
    main(parse())
