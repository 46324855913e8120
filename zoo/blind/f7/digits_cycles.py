"""Digit classification (sklearn digits) with a small CNN and cyclic cosine learning rate."""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits


class Cycles:
    """Cosine cycles; every new cycle starts from a peak scaled by `boost`."""

    def __init__(self, opt, peak, period, boost):
        self.opt, self.peak, self.period, self.boost = opt, peak, period, boost
        self.t = 0

    def step(self):
        cycle, pos = divmod(self.t, self.period)
        lr = self.peak * self.boost ** cycle * 0.5 * (1 + math.cos(math.pi * pos / self.period))
        for group in self.opt.param_groups:
            group["lr"] = lr
        self.t += 1
        return lr


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1 = nn.Conv2d(1, 12, 3, padding=1)
        self.c2 = nn.Conv2d(12, 24, 3, padding=1)
        self.fc = nn.Linear(24 * 4, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.c1(x)), 2)
        x = F.max_pool2d(F.relu(self.c2(x)), 2)
        return self.fc(x.flatten(1))


def main(steps=480, batch=48):
    torch.manual_seed(0)
    d = load_digits()
    x = torch.tensor(d.images, dtype=torch.float32).unsqueeze(1) / 8 - 1
    y = torch.tensor(d.target)
    net = Net()
    opt = torch.optim.SGD(net.parameters(), lr=0.03, momentum=0.9)
    cyc = Cycles(opt, peak=0.03, period=120, boost=5.0)
    for step in range(steps):
        lr = cyc.step()
        i = torch.randint(0, len(x), (batch,))
        out = net(x[i])
        loss = F.cross_entropy(out, y[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 20 == 0:
            print(f"step {step:4d} lr {lr:.4f} loss {loss.item():.4f} acc {(out.argmax(1) == y[i]).float().mean().item():.3f}")


if __name__ == "__main__":
    main()
