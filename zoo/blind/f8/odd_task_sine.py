"""Meta-learning of sine families, one family after the other."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self, h=40):
        super().__init__()
        self.p = nn.ParameterList([
            nn.Parameter(torch.randn(h, 1)), nn.Parameter(torch.zeros(h)),
            nn.Parameter(torch.randn(h, h) / math.sqrt(h)), nn.Parameter(torch.zeros(h)),
            nn.Parameter(torch.randn(1, h) / math.sqrt(h)), nn.Parameter(torch.zeros(1)),
        ])

    def forward(self, x, p=None):
        p = list(self.p) if p is None else p
        h = torch.tanh(F.linear(x, p[0], p[1]))
        h = torch.tanh(F.linear(h, p[2], p[3]))
        return F.linear(h, p[4], p[5])


def task(family, g):
    amp = [1.0, 12.0, 6.0, 1.0][family] * (0.8 + 0.4 * torch.rand((), generator=g))
    phase = torch.rand((), generator=g) * 0.5
    freq = [1.0, 1.5, 0.7, 1.0][family]

    def draw(n):
        x = torch.rand(n, 1, generator=g) * 6 - 3
        return x, amp * torch.sin(freq * x + phase)
    return draw


def adapted(net, draw, lr=0.01):
    x, y = draw(16)
    loss = (net(x) - y).pow(2).mean()
    grads = torch.autograd.grad(loss, list(net.p), create_graph=True)
    return [p - lr * g for p, g in zip(net.p, grads)]


def main():
    torch.manual_seed(20)
    g = torch.Generator().manual_seed(20)
    net = Net()
    opt = torch.optim.Adam(net.parameters(), lr=5e-3)
    for step in range(400):
        family = step // 100
        losses = []
        for _ in range(3):
            draw = task(family, g)
            fast = adapted(net, draw)
            x, y = draw(16)
            losses.append((net(x, fast) - y).pow(2).mean())
        loss = torch.stack(losses).mean()
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 5.0)
        opt.step()
        if step % 10 == 0:
            print(f"step {step} family {family} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
