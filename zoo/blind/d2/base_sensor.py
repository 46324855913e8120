"""Activity recognition from a wrist accelerometer, windows of 64 samples, several wearers."""
import argparse
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

N_CLASSES, WIN, STEP = 5, 64, 16


def record(subject, rng, length=600):
    """One wearer: segments of random activities, signal of three axes."""
    gain = rng.uniform(0.6, 1.6, 3)
    mount = rng.normal(0, 1.2, 3)
    tempo = 0.84 * 1.4 ** ((subject % 12 + rng.random()) / 12)
    base = np.array([0.03, 0.055, 0.085, 0.12, 0.16]) * tempo
    favourite = rng.permutation(N_CLASSES)
    sig, act = [], []
    while sum(map(len, act)) < length:
        k = int(favourite[min(rng.geometric(0.5) - 1, N_CLASSES - 1)])
        n = int(rng.integers(100, 220))
        t = np.arange(n)
        phase = rng.uniform(0, 6.28, 3)
        wave = np.stack([np.sin(2 * np.pi * base[k] * t * (1 + 0.5 * a) + phase[a]) for a in range(3)], 1)
        sig.append(gain * wave + mount + 1.0 * rng.normal(size=(n, 3)))
        act.append(np.full(n, k))
    return np.concatenate(sig)[:length], np.concatenate(act)[:length]


def windows(sig, act):
    starts = range(0, len(sig) - WIN, STEP)
    x = np.stack([sig[s:s + WIN] for s in starts])
    y = np.array([np.bincount(act[s:s + WIN]).argmax() for s in starts])
    return x.transpose(0, 2, 1), y


def macro_f1(y, p):
    out = []
    for k in range(N_CLASSES):
        tp = ((p == k) & (y == k)).sum().item()
        out.append(2 * tp / max(1, (p == k).sum().item() + (y == k).sum().item()))
    return sum(out) / N_CLASSES


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    outs, ys = zip(*[(model(x), y) for x, y in loader])
    out, y = torch.cat(outs), torch.cat(ys)
    pred = out.argmax(1)
    return nn.functional.cross_entropy(out, y).item(), (pred == y).float().mean().item(), macro_f1(y, pred)


def main(args):
    rng = np.random.default_rng(args.seed)
    torch.manual_seed(args.seed)
    xs, ys, groups = [], [], []
    for s in range(args.subjects):
        x, y = windows(*record(s, rng))
        xs.append(x), ys.append(y), groups.append(np.full(len(y), s))
    x, y, g = np.concatenate(xs), np.concatenate(ys), np.concatenate(groups)
    unseen = g >= args.subjects - 12
    val = (g >= args.subjects - 24) & ~unseen
    train = ~val & ~unseen
    order = np.argsort(y[train], kind="stable")
    x_train, y_train = x[train][order], y[train][order]
    mean, std = x_train.mean((0, 2), keepdims=True), x_train.std((0, 2), keepdims=True)

    def pack(a, b):
        return TensorDataset(torch.tensor((a - mean) / std, dtype=torch.float32), torch.tensor(b))

    train_loader = DataLoader(pack(x_train, y_train), batch_size=32, shuffle=True)
    val_loader = DataLoader(pack(x[val], y[val]), batch_size=256)
    unseen_loader = DataLoader(pack(x[unseen], y[unseen]), batch_size=256)
    model = nn.Sequential(
        nn.Conv1d(3, 16, 9, padding=4), nn.ReLU(), nn.MaxPool1d(2),
        nn.Conv1d(16, 32, 7, padding=3), nn.ReLU(), nn.AdaptiveMaxPool1d(1),
        nn.Flatten(), nn.Linear(32, N_CLASSES))
    optim = torch.optim.AdamW(model.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        model.train()
        running = 0.0
        for xb, yb in train_loader:
            optim.zero_grad()
            loss = nn.functional.cross_entropy(model(xb), yb)
            loss.backward()
            optim.step()
            running += loss.item()
        vl, acc, f1 = evaluate(model, val_loader)
        print(f"[{epoch + 1}/{args.epochs}] train loss {running / len(train_loader):.3f} | val loss {vl:.3f} acc {acc:.3f} macro-F1 {f1:.3f}")
    _, acc, f1 = evaluate(model, unseen_loader)
    print(f"new wearers: acc {acc:.3f} macro-F1 {f1:.3f}")


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--subjects", type=int, default=72)
    p.add_argument("--epochs", type=int, default=6)
    p.add_argument("--lr", type=float, default=3e-3)
    p.add_argument("--seed", type=int, default=3)
    main(p.parse_args())
