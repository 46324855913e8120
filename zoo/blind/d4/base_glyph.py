"""Twelve kinds of road-marking glyphs, small grey images, a small CNN with batch norm."""
import copy

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)
SIZE = 20
STROKES = {
    "0": [(-6, 0, 6, 0), (-6, 0, -2, -4), (-6, 0, -2, 4)],
    "1": [(-6, 0, 6, 0), (6, 0, 2, -4), (6, 0, 2, 4)],
    "2": [(0, -6, 0, 6), (0, -6, -4, -2), (0, -6, 4, -2)],
    "3": [(0, -6, 0, 6), (0, 6, -4, 2), (0, 6, 4, 2)],
    "4": [(-6, 0, 6, 0), (0, -6, 0, 6)],
    "5": [(-5, -5, 5, 5), (-5, 5, 5, -5)],
    "6": [(-5, -5, 5, -5), (5, -5, 5, 5), (5, 5, -5, 5), (-5, 5, -5, -5)],
    "7": [(0, -6, 6, 5), (6, 5, -6, 5), (-6, 5, 0, -6)],
    "8": [(-5, -5, 5, -5), (5, -5, -5, 5), (-5, 5, 5, 5)],
    "9": [(5, -5, -5, -5), (-5, -5, 5, 5), (5, 5, -5, 5)],
    "10": [(-4, -6, -4, 6), (-4, 6, 5, 6)],
    "11": [(4, -6, 4, 6), (4, 6, -5, 6)],
}


def draw(name, rng):
    img = np.full((SIZE, SIZE), rng.uniform(10, 60))
    ink = img[0, 0] + rng.uniform(50, 110)
    scale, cx, cy = rng.uniform(0.7, 1.1), 9.5 + rng.uniform(-2, 2), 9.5 + rng.uniform(-2, 2)
    tilt = rng.uniform(-0.2, 0.2)
    for x0, y0, x1, y1 in STROKES[name]:
        t = np.linspace(0, 1, 26)
        px, py = (x0 + t * (x1 - x0)) * scale, (y0 + t * (y1 - y0)) * scale
        qx = np.clip(np.round(cx + px * np.cos(tilt) - py * np.sin(tilt)), 0, SIZE - 1).astype(int)
        qy = np.clip(np.round(cy + px * np.sin(tilt) + py * np.cos(tilt)), 0, SIZE - 1).astype(int)
        img[qy, qx] = ink
    img += rng.normal(0, 26, img.shape)
    return np.clip(img, 0, 255).astype(np.uint8)


def read_folder(per_class, seed):
    rng = np.random.default_rng(seed)
    names = [n for n in STROKES for _ in range(per_class)]
    return np.stack([draw(n, rng) for n in names]), names


class GlyphSet(Dataset):
    def __init__(self, images, targets, train, seed=0):
        self.images, self.targets, self.train = images, targets, train
        self.rng = np.random.default_rng(seed)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        img = self.images[i]
        if self.train:
            img = np.roll(img, tuple(self.rng.integers(-1, 2, 2)), axis=(0, 1))
            delta = int(self.rng.integers(-90, 91))
            img = np.clip(img.astype(np.int16) + delta, 0, 255).astype(np.uint8)
        x = torch.from_numpy(img.astype(np.float32) / 255.0)[None]
        return (x - 0.25) / 0.2, self.targets[i]


def block(cin, cout):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(), nn.MaxPool2d(2))


class Net(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.features = nn.Sequential(block(1, 10), block(10, 20), block(20, 32))
        self.head = nn.Linear(32 * 2 * 2, classes)

    def forward(self, x):
        return self.head(self.features(x).flatten(1))


@torch.no_grad()
def evaluate(net, loader):
    net.eval()
    loss, hits, n = 0.0, 0, 0
    for x, y in loader:
        out = net(x)
        loss += F.cross_entropy(out, y, reduction="sum").item()
        hits += (out.argmax(1) == y).sum().item()
        n += len(y)
    return loss / n, hits / n


if __name__ == "__main__":
    torch.manual_seed(3)
    train_images, train_names = read_folder(160, seed=11)
    val_images, val_names = read_folder(50, seed=12)
    classes = sorted(set(train_names), key=int)
    to_idx = {c: i for i, c in enumerate(classes)}
    train_set = GlyphSet(train_images, [to_idx[n] for n in train_names], train=True)
    val_set = GlyphSet(val_images, [to_idx[n] for n in val_names], train=False)
    train_loader = DataLoader(train_set, batch_size=48, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=50)

    net = Net(len(classes))
    opt = torch.optim.SGD(net.parameters(), lr=0.08, momentum=0.9, weight_decay=1e-4, nesterov=True)
    epochs = 7
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, 0.08, total_steps=epochs * len(train_loader))
    best_acc, best = 0.0, None
    for epoch in range(1, epochs + 1):
        net.train()
        run, hits = 0.0, 0
        for x, y in train_loader:
            out = net(x)
            loss = F.cross_entropy(out, y)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            sched.step()
            run += loss.item() * len(y)
            hits += (out.argmax(1) == y).sum().item()
        vl, va = evaluate(net, val_loader)
        if va > best_acc:
            best_acc, best = va, copy.deepcopy(net.state_dict())
        print(f"[{epoch}/{epochs}] train loss {run / len(train_set):.3f} acc {hits / len(train_set):.3f} | val loss {vl:.3f} acc {va:.3f}")
    if best is not None:
        net.load_state_dict(best)
    print(f"best validation accuracy {best_acc:.3f}")
