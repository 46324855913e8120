"""Contrastive representations of heart beats (no labels), then a linear probe.

The InfoNCE loss starts at ln(2B-1) = 5.54 for B = 128 and cannot reach zero, since
several beats of a batch come from the same class and are close to each other. What counts
is the probe: a linear classifier on frozen features with only 150 labelled beats.
"""
import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.linear_model import LogisticRegression

LENGTH, KINDS, BATCH, TEMPERATURE = 96, 5, 128, 0.2


def beats(n, seed):
    rng = np.random.default_rng(seed)
    t = np.arange(LENGTH)
    y = rng.integers(0, KINDS, n)
    wave = lambda c, w, a: a[:, None] * np.exp(-0.5 * ((t - c[:, None]) / w[:, None]) ** 2)
    u = lambda lo, hi: rng.uniform(lo, hi, n)
    is_ = lambda k: (y == k).astype(float)
    r = 44 + u(-6, 6)
    x = wave(r, 2.0 + 3.0 * is_(1) + u(-0.3, 0.3), u(0.8, 1.3))
    x += wave(r - 16 + 6 * is_(2), 3.5 + 0 * r, u(0.15, 0.3) * (1 - is_(3)))
    x += wave(r + 22, 6.0 + 0 * r, u(0.25, 0.45) * (1 - 2 * is_(4)))
    x += u(-0.3, 0.3)[:, None] * np.sin(2 * np.pi * t / 96 + u(0, 6.3)[:, None])
    return torch.tensor(x + rng.normal(0, 0.06, x.shape), dtype=torch.float32), torch.tensor(y)


def view(x):
    """Random gain, small shift, baseline wander, noise and a short gap."""
    n = len(x)
    index = (torch.arange(LENGTH)[None] - torch.randint(-6, 7, (n, 1))) % LENGTH
    x = x.gather(1, index) * (0.7 + 0.6 * torch.rand(n, 1))
    t = torch.arange(LENGTH)[None] / LENGTH
    x = x + 0.3 * torch.randn(n, 1) * torch.sin(2 * math.pi * (t + torch.rand(n, 1)))
    start = torch.randint(0, LENGTH - 8, (n, 1))
    gap = (torch.arange(LENGTH)[None] >= start) & (torch.arange(LENGTH)[None] < start + 8)
    return (x + 0.08 * torch.randn_like(x)).masked_fill(gap, 0.0)


class Encoder(nn.Module):
    def __init__(self, width=32, dim=48):
        super().__init__()
        self.body = nn.Sequential(nn.Conv1d(1, width, 9, 2, 4), nn.BatchNorm1d(width), nn.ReLU(),
                                  nn.Conv1d(width, width, 7, 2, 3), nn.BatchNorm1d(width), nn.ReLU(),
                                  nn.Conv1d(width, dim, 5, 2, 2), nn.ReLU(), nn.Flatten(),
                                  nn.Linear(dim * LENGTH // 8, 64))
        self.project = nn.Sequential(nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 32))

    def forward(self, x):
        return self.body(x[:, None])


def info_nce(a, b):
    z = F.normalize(torch.cat([a, b]), dim=1)
    similarity = z @ z.T / TEMPERATURE
    similarity.fill_diagonal_(float("-inf"))
    n = len(a)
    partner = torch.cat([torch.arange(n, 2 * n), torch.arange(n)])
    return F.cross_entropy(similarity, partner), (similarity.argmax(1) == partner).float().mean()


@torch.no_grad()
def features(model, x):
    model.eval()
    return torch.cat([model(part) for part in x.split(500)]).numpy()


def probe(model, labelled, held):
    fit = features(model, labelled[0])
    mean, std = fit.mean(0), fit.std(0) + 1e-6
    clf = LogisticRegression(C=0.1, max_iter=500).fit((fit - mean) / std, labelled[1].numpy())
    return clf.score((features(model, held[0]) - mean) / std, held[1].numpy())


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    pool, _ = beats(4600, 1)
    labelled, val, test = beats(150, 2), beats(800, 3), beats(2000, 4)
    model = Encoder()
    print(f"probe on untrained features: val acc {probe(model, labelled, val):.3f}")
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-4)
    epochs = 12
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    for epoch in range(1, epochs + 1):
        model.train()
        total = found = steps = 0
        for rows in torch.randperm(len(pool)).split(BATCH):
            if len(rows) < BATCH:
                continue                                 # the loss depends on the batch size
            x = pool[rows]
            loss, top1 = info_nce(model.project(model(view(x))), model.project(model(view(x))))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total, found, steps = total + loss.item(), found + top1.item(), steps + 1
        schedule.step()
        print(f"epoch {epoch:2d} InfoNCE {total / steps:.4f} partner found {found / steps:.3f} "
              f"probe val acc {probe(model, labelled, val):.3f}")
    print(f"test: probe acc {probe(model, labelled, test):.3f}")


if __name__ == "__main__":
    main()
