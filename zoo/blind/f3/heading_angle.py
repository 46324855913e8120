import math

import torch
import torch.nn as nn


def unit(v):
    return v / v.norm(dim=-1, keepdim=True)


class Compass(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.lin = nn.Linear(d, 3, bias=False)

    def forward(self, x):
        return unit(self.lin(x))


def angular_loss(p, q):
    angle = torch.acos((p * q).sum(dim=-1))
    return angle.mean()


def fit(seed=1, steps=500):
    torch.manual_seed(seed)
    truth = torch.randn(3, 8)
    x = torch.randn(1024, 8)
    q = unit(x @ truth.T)
    net = Compass(8)
    opt = torch.optim.Adam(net.parameters(), lr=2e-2)
    sched = torch.optim.lr_scheduler.ExponentialLR(opt, gamma=0.985)
    for step in range(steps):
        idx = torch.randint(0, 1024, (64,))
        loss = angular_loss(net(x[idx]), q[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        if step % 50 == 0:
            print(f"{step:4d} mean angle {math.degrees(loss.item()):.4f} deg  lr {sched.get_last_lr()[0]:.5f}")


if __name__ == "__main__":
    fit()
