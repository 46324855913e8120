import os
import random
import tempfile

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

SHAPES = ["sphere", "cube", "cylinder", "cone", "torus"]


def sample_shape(name, n, rng):
    u, v = rng.random(n), rng.random(n)
    t = 2 * np.pi * u
    if name == "sphere":
        z = 2 * v - 1
        r = np.sqrt(1 - z ** 2)
        p = np.stack([r * np.cos(t), r * np.sin(t), z], 1)
    elif name == "cube":
        p = rng.uniform(-1, 1, (n, 3))
        ax = rng.integers(0, 3, n)
        p[np.arange(n), ax] = rng.choice([-1.0, 1.0], n)
    elif name == "cylinder":
        p = np.stack([np.cos(t), np.sin(t), 2 * v - 1], 1)
    elif name == "cone":
        h = np.sqrt(v)
        p = np.stack([h * np.cos(t), h * np.sin(t), 1 - 2 * h], 1)
    else:
        w = 2 * np.pi * v
        p = np.stack([(1 + 0.4 * np.cos(w)) * np.cos(t), (1 + 0.4 * np.cos(w)) * np.sin(t), 0.4 * np.sin(w)], 1)
    p = p * rng.uniform(0.8, 1.2, (1, 3)) + rng.normal(0, 0.05, p.shape)
    return p


def build(n_per_class, seed):
    rng = np.random.default_rng(seed)
    clouds, labels = [], []
    for k, name in enumerate(SHAPES):
        for _ in range(n_per_class):
            m = int(rng.integers(28, 49))
            p = sample_shape(name, m, rng)
            p = p - p.mean(0)
            p = p / np.linalg.norm(p, axis=1).max()
            clouds.append(torch.tensor(p, dtype=torch.float32))
            labels.append(k)
    return clouds, labels


class CloudSet(Dataset):
    def __init__(self, clouds, labels, train):
        self.clouds, self.labels, self.train = clouds, labels, train

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        pts = self.clouds[i].clone()
        if self.train:
            a = random.uniform(0, 2 * np.pi)
            c, s = np.cos(a), np.sin(a)
            pts[:, :2] = pts[:, :2] @ torch.tensor([[c, -s], [s, c]], dtype=torch.float32)
            pts += 0.04 * torch.randn_like(pts)
        return pts, self.labels[i]


def pad(batch):
    n = max(len(p) for p, _ in batch)
    x = torch.zeros(len(batch), n, 3)
    mask = torch.zeros(len(batch), n, dtype=torch.bool)
    for i, (p, _) in enumerate(batch):
        x[i, :len(p)] = p
        mask[i, :len(p)] = True
    return x, mask, torch.tensor([y for _, y in batch])


class PointNet(nn.Module):
    def __init__(self, classes, width=64):
        super().__init__()
        self.local = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, width), nn.ReLU(), nn.Linear(width, width))
        self.norm = nn.BatchNorm1d(2 * width)
        self.head = nn.Sequential(nn.Linear(2 * width, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, classes))

    def forward(self, x, mask):
        f = self.local(x)
        m = mask.unsqueeze(-1)
        mx = f.masked_fill(~m, float("-inf")).max(dim=1).values
        mean = (f * m).sum(dim=1) / m.sum(dim=1)
        g = self.norm(torch.cat([mx, mean], dim=1))
        return self.head(g)


def evaluate(model, loader, criterion):
    model.eval()
    loss = hits = n = 0
    with torch.no_grad():
        for x, mask, y in loader:
            out = model(x, mask)
            loss += criterion(out, y).item() * len(y)
            hits += (out.argmax(1) == y).sum().item()
            n += len(y)
    return loss / n, hits / n


def train():
    seed = 11
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    train_loader = DataLoader(CloudSet(*build(110, 1), train=True), batch_size=32, shuffle=True, collate_fn=pad)
    val_loader = DataLoader(CloudSet(*build(60, 2), train=False), batch_size=32, collate_fn=pad)
    model = PointNet(len(SHAPES))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[8, 12], gamma=0.2)
    best, folder = 0.0, tempfile.mkdtemp()
    path = os.path.join(folder, "best.pt")
    for epoch in range(14):
        model.train()
        running = 0.0
        for x, mask, y in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(x, mask), y)
            loss.backward()
            optimizer.step()
            running += loss.item()
        scheduler.step()
        vl, va = evaluate(model, val_loader, criterion)
        if va > best:
            best = va
            torch.save(model.state_dict(), path)
        print(f"[{epoch:02d}] train loss {running / len(train_loader):.4f} | val loss {vl:.4f} | val acc {va:.3f}")
    print(f"last val loss {vl:.4f} acc {va:.4f} best {best:.4f}")


if __name__ == "__main__":
    train()
