"""Random fixed Gabor stem, only the residual part on top is trained."""
import math
import numpy as np
import torch
from torch import nn


def gabor_bank(n, k=5):
    ax = torch.arange(k) - k // 2
    yy, xx = torch.meshgrid(ax, ax, indexing="ij")
    bank = []
    for i in range(n):
        th, f = math.pi * i / n, 1.2
        u = xx * math.cos(th) + yy * math.sin(th)
        bank.append(torch.exp(-(xx ** 2 + yy ** 2) / 5.0) * torch.cos(f * u + (i % 2) * math.pi / 2))
    w = torch.stack(bank)[:, None]
    return w - w.mean((2, 3), keepdim=True)


def bars(n, rng):
    y = rng.integers(0, 4, n)
    x = np.zeros((n, 1, 14, 14), np.float32)
    yy, xx = np.mgrid[-6.5:7, -6.5:7]
    for i, k in enumerate(y):
        th = k * np.pi / 4 + rng.normal(0, 0.08)
        d = xx * np.cos(th) + yy * np.sin(th) + rng.uniform(-3, 3)
        x[i, 0] = (np.abs(d) < 1.2) + 0.25 * rng.standard_normal((14, 14))
    return torch.from_numpy(x), torch.from_numpy(y)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(1, 8, 5, padding=2, bias=False)
        self.stem.weight.data.copy_(gabor_bank(8))
        self.stem.weight.requires_grad_(False)
        self.a = nn.Conv2d(8, 8, 3, padding=1)
        self.b = nn.Conv2d(8, 8, 3, padding=1)
        self.head = nn.Linear(8, 4)

    def forward(self, x):
        h = torch.relu(self.stem(x))
        h = torch.relu(h + self.b(torch.relu(self.a(h))))
        return self.head(h.amax((2, 3)))


if __name__ == "__main__":
    torch.manual_seed(4)
    rng = np.random.default_rng(4)
    (xt, yt), (xv, yv) = bars(600, rng), bars(200, rng)
    model = Net()
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=5e-3)
    for epoch in range(10):
        perm = torch.randperm(len(xt))
        losses = []
        for i in range(0, len(xt), 40):
            b = perm[i:i + 40]
            xb = torch.roll(xt[b], shifts=tuple(torch.randint(-1, 2, (2,)).tolist()), dims=(2, 3))
            loss = nn.functional.cross_entropy(model(xb), yt[b])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        with torch.no_grad():
            acc = (model(xv).argmax(1) == yv).float().mean().item()
        print("epoch", epoch, "loss", round(sum(losses) / len(losses), 4), "val", round(acc, 3))
