"""Weave defects in textile patches, trained with mixup, label smoothing and dropout.

All regularisers act in training only. The training loss keeps well above the
validation loss and training accuracy (against the larger share of the mix) below
validation accuracy, which is scored on clean patches with plain cross entropy.
"""
import argparse

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

KINDS = ["plain", "twill", "satin", "basket", "broken", "knot"]
SIDE = 20


def patch(kind, rng):
    yy, xx = np.mgrid[0:SIDE, 0:SIDE] + rng.integers(0, 12, (2, 1, 1))
    if kind == 0:
        z = (xx + yy) % 2
    elif kind == 1:
        z = ((xx + yy) % 4 < 2)
    elif kind == 2:
        z = ((xx + 2 * yy) % 5 == 0)
    elif kind == 3:
        z = ((xx // 2 + yy // 2) % 2)
    elif kind == 4:
        z = ((xx + yy) % 4 < 2).copy()
        row = rng.integers(3, SIDE - 3)
        z[row:row + 2] = 0
    else:
        z = ((xx + yy) % 2).astype(float)
        c = rng.uniform(5, SIDE - 5, 2)
        gy, gx = np.mgrid[0:SIDE, 0:SIDE]
        z[np.hypot(gx - c[0], gy - c[1]) < 3] = 1.0
    return rng.uniform(0.3, 1.0) * z + rng.normal(0, 0.35, (SIDE, SIDE))


def patches(n, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, len(KINDS), n)
    return (torch.tensor(np.stack([patch(k, rng) for k in y])[:, None], dtype=torch.float32), torch.tensor(y))


def network(dropout):
    return nn.Sequential(nn.Conv2d(1, 16, 5, padding=2), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Flatten(), nn.Dropout(dropout), nn.Linear(32 * 25, 64), nn.ReLU(),
                         nn.Dropout(dropout), nn.Linear(64, len(KINDS)))


def mix(x, y, alpha):
    """Mixed inputs, soft targets, and the label that has the larger share."""
    lam = float(np.random.default_rng(int(torch.randint(2 ** 31, (1,)))).beta(alpha, alpha))
    other = torch.randperm(len(x))
    hot = F.one_hot(y, len(KINDS)).float()
    main = y if lam >= 0.5 else y[other]
    return lam * x + (1 - lam) * x[other], lam * hot + (1 - lam) * hot[other], main


@torch.no_grad()
def evaluate(model, x, y):
    model.eval()
    logits = model(x)
    return F.cross_entropy(logits, y).item(), (logits.argmax(1) == y).float().mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=14)
    parser.add_argument("--alpha", type=float, default=0.4)
    parser.add_argument("--smoothing", type=float, default=0.1)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    train, val, test = patches(2400, 1), patches(600, 2), patches(1200, 3)
    mean, std = train[0].mean(), train[0].std()
    train, val, test = [((x - mean) / std, y) for x, y in (train, val, test)]
    model = network(0.4)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs)
    s = args.smoothing
    floor = -((1 - s + s / 6) * np.log(1 - s + s / 6) + 5 * s / 6 * np.log(s / 6))
    print(f"lowest loss possible with smoothing alone: {floor:.3f}")
    for epoch in range(1, args.epochs + 1):
        model.train()
        total, hit = 0.0, 0
        for rows in torch.randperm(len(train[0])).split(48):
            x, target, main_label = mix(train[0][rows], train[1][rows], args.alpha)
            logits = model(x)
            loss = F.cross_entropy(logits, target, label_smoothing=s)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
            hit += (logits.argmax(1) == main_label).sum().item()
        schedule.step()
        val_loss, val_acc = evaluate(model, *val)
        print(f"epoch {epoch:2d} train loss (mixed) {total / len(train[0]):.4f} acc {hit / len(train[0]):.3f} "
              f"val loss {val_loss:.4f} acc {val_acc:.3f}")
    loss, acc = evaluate(model, *test)
    print(f"test loss {loss:.4f} acc {acc:.3f}")


if __name__ == "__main__":
    main()
