"""Six hand-drawn signs, 16x16 RGB, small CNN."""
import os
import random
import tempfile

import numpy as np
import torch
import torch.nn as nn
from sklearn.metrics import accuracy_score, f1_score
from torch.utils.data import DataLoader, Dataset

random.seed(3)
np.random.seed(3)
torch.manual_seed(3)

SIGNS = ["slash", "backslash", "ell", "jay", "cross", "ring"]
_CACHE = {}


def draw(kind, rng):
    """One raw sign as uint8 HxWx3."""
    img = np.zeros((16, 16), np.float32)
    cy, cx, s = rng.integers(6, 10), rng.integers(6, 10), rng.integers(3, 6)
    for t in range(-s, s + 1):
        if kind == 0:
            img[cy - t, cx + t] = 1
        elif kind == 1:
            img[cy + t, cx + t] = 1
        elif kind == 2:
            img[cy + t, cx - s] = 1
            img[cy + s, cx + t] = 1
        elif kind == 3:
            img[cy + t, cx + s] = 1
            img[cy + s, cx + t] = 1
        elif kind == 4:
            img[cy + t, cx] = 1
            img[cy, cx + t] = 1
        else:
            a = np.pi * t / s
            img[int(round(cy + s * np.sin(a))), int(round(cx + s * np.cos(a)))] = 1
    ink = rng.uniform(0.5, 1.0, 3)
    paper = rng.uniform(0.0, 0.35, 3)
    rgb = img[..., None] * ink + (1 - img[..., None]) * paper
    rgb = rgb + rng.normal(0, 0.3, rgb.shape)
    return (rgb.clip(0, 1) * 255).astype(np.uint8)


def make_split(n, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 6, n)
    return np.stack([draw(k, rng) for k in y]), y


def decode(raw):
    x = torch.from_numpy(raw).permute(2, 0, 1).float() / 255.0
    return (x - 0.3) / 0.25


class Signs(Dataset):
    def __init__(self, split, raw, y, augment=False):
        self.split, self.raw, self.y, self.augment = split, raw, y, augment

    def __len__(self):
        return len(self.y)

    def jitter(self, img):
        img.mul_(random.uniform(0.8, 1.2)).add_(random.uniform(-0.2, 0.2))
        r, c = random.randrange(12), random.randrange(12)
        img[:, r:r + 5, c:c + 5] = 0.0
        shift = (random.randint(-1, 1), random.randint(-1, 1))
        return torch.roll(img, shift, dims=(1, 2))

    def __getitem__(self, i):
        key = (self.split, i)
        if key not in _CACHE:
            _CACHE[key] = decode(self.raw[i])
        img = _CACHE[key]
        if self.augment:
            img = self.jitter(img.clone())
        return img, int(self.y[i])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Dropout(0.2), nn.Linear(32 * 16, 6))

    def forward(self, x):
        return self.body(x)


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    ys, ps, tot = [], [], 0.0
    for x, y in loader:
        out = model(x)
        tot += nn.functional.cross_entropy(out, y, reduction="sum").item()
        ys.append(y)
        ps.append(out.argmax(1))
    ys, ps = torch.cat(ys).numpy(), torch.cat(ps).numpy()
    return tot / len(ys), accuracy_score(ys, ps), f1_score(ys, ps, average="macro")


def main():
    xtr, ytr = make_split(1600, 10)
    xva, yva = make_split(500, 11)
    train_set = Signs("train", xtr, ytr, augment=True)
    val_set = Signs("val", xva, yva)
    train_loader = DataLoader(train_set, batch_size=64, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=100)
    model = Net()
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    best, folder = 0.0, tempfile.mkdtemp()
    for epoch in range(8):
        model.train()
        tot, hit, n = 0.0, 0, 0
        for x, y in train_loader:
            opt.zero_grad()
            out = model(x)
            loss = nn.functional.cross_entropy(out, y)
            loss.backward()
            opt.step()
            tot += loss.item() * len(y)
            hit += (out.argmax(1) == y).sum().item()
            n += len(y)
        vl, va, vf = evaluate(model, val_loader)
        if va > best:
            best = va
            torch.save(model.state_dict(), os.path.join(folder, "best.pt"))
        print(f"epoch {epoch} train loss {tot / n:.4f} acc {hit / n:.3f} | val loss {vl:.4f} acc {va:.3f} f1 {vf:.3f}")
    model.load_state_dict(torch.load(os.path.join(folder, "best.pt")))
    vl, va, vf = evaluate(model, val_loader)
    print(f"best checkpoint: val loss {vl:.4f} acc {va:.3f} macro-f1 {vf:.3f}")


if __name__ == "__main__":
    main()
