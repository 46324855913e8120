"""Pictogram classification: small residual CNN, shift and brightness augmentation, one-cycle SGD."""
from dataclasses import dataclass
import copy
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

CLASSES = ["disc", "ring", "square", "triangle", "cross", "arrow_left", "arrow_right", "hook_left", "hook_right"]


@dataclass
class Config:
    size: int = 24
    per_class_train: int = 360
    per_class_test: int = 80
    val_fraction: float = 0.15
    batch_size: int = 64
    epochs: int = 9
    max_lr: float = 0.12
    momentum: float = 0.9
    weight_decay: float = 5e-4
    width: int = 16
    seed: int = 7


def shape_mask(name, u, v):
    r = np.hypot(u, v)
    if name == "disc":
        return r < 0.85
    if name == "ring":
        return (r < 0.95) & (r > 0.55)
    if name == "square":
        return np.maximum(abs(u), abs(v)) < 0.75
    if name == "triangle":
        return (abs(v) < 0.8) & (abs(u) < (v + 0.8) * 0.55)
    if name == "cross":
        return ((abs(u) < 0.26) | (abs(v) < 0.26)) & (np.maximum(abs(u), abs(v)) < 0.9)
    if name.endswith("right"):
        u = -u
    if name.startswith("arrow"):
        return ((abs(v) < 0.2) & (u > -0.2) & (u < 0.9)) | ((u > -0.9) & (u < 0) & (abs(v) < (u + 0.9) * 0.85))
    return ((abs(u - 0.45) < 0.22) & (abs(v) < 0.9)) | ((abs(v + 0.68) < 0.22) & (u > -0.8) & (u < 0.67))


def draw(name, size, rng):
    yy, xx = np.mgrid[0:size, 0:size].astype(np.float32)
    cx, cy = size / 2 + rng.uniform(-3, 3, 2)
    scale = rng.uniform(0.28, 0.42) * size
    a = rng.normal(0, 0.2)
    dx, dy = (xx - cx) / scale, (yy - cy) / scale
    u, v = dx * np.cos(a) + dy * np.sin(a), -dx * np.sin(a) + dy * np.cos(a)
    bg = rng.uniform(0, 1, 3)
    fg = rng.uniform(0, 1, 3)
    while np.abs(fg - bg).max() < 0.4:
        fg = rng.uniform(0, 1, 3)
    img = np.where(shape_mask(name, u, v)[..., None], fg, bg)
    img = img * (1 + 0.25 * np.sin(xx / rng.uniform(3, 9) + rng.uniform(0, 6)))[..., None]
    y0, x0 = rng.integers(0, size - 4, 2)
    img[y0:y0 + 4, x0:x0 + 4] = rng.uniform(0, 1, 3)
    img = img + rng.normal(0, 0.05, img.shape)
    return (img.clip(0, 1) * 255).astype(np.uint8)


def make_images(per_class, size, rng):
    images = np.stack([draw(n, size, rng) for n in CLASSES for _ in range(per_class)])
    labels = np.repeat(np.arange(len(CLASSES)), per_class)
    return images, labels


class Pictograms(Dataset):
    def __init__(self, images, labels, mean, std, augment, seed=0):
        self.images, self.labels = images, labels
        self.mean, self.std = mean, std
        self.augment = augment
        self.rng = np.random.default_rng(seed)

    def __len__(self):
        return len(self.labels)

    def _augment(self, img):
        padded = np.pad(img, ((2, 2), (2, 2), (0, 0)), mode="edge")
        dy, dx = self.rng.integers(0, 5, 2)
        h, w, _ = img.shape
        img = padded[dy:dy + h, dx:dx + w]
        return (img * self.rng.uniform(0.8, 1.2)).clip(0, 255)

    def __getitem__(self, i):
        img = self.images[i].astype(np.float32)
        if self.augment:
            img = self._augment(img)
        img = (img / 255.0 - self.mean) / self.std
        x = torch.from_numpy(np.ascontiguousarray(img, dtype=np.float32))
        x = x.permute(2, 0, 1)
        return x, int(self.labels[i])


class Block(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(cout)
        self.conv2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(cout)
        self.skip = nn.Identity()
        if stride != 1 or cin != cout:
            self.skip = nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False), nn.BatchNorm2d(cout))

    def forward(self, x):
        h = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(h)) + self.skip(x))


class ResNet(nn.Module):
    def __init__(self, width, n_classes):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, width, 3, 2, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU())
        self.body = nn.Sequential(Block(width, width, 1), Block(width, 2 * width, 2), Block(2 * width, 4 * width, 2))
        self.fc = nn.Linear(4 * width, n_classes)

    def forward(self, x):
        return self.fc(self.body(self.stem(x)).mean((2, 3)))


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    loss, hits, n = 0.0, 0, 0
    for x, y in loader:
        logits = model(x)
        loss += F.cross_entropy(logits, y, reduction="sum").item()
        hits += (logits.argmax(1) == y).sum().item()
        n += len(y)
    return loss / n, hits / n


def train_epoch(model, loader, optimizer, scheduler):
    model.train()
    total, n = 0.0, 0
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        scheduler.step()
        total += loss.item() * len(y)
        n += len(y)
    return total / n


def main(cfg):
    torch.set_num_threads(1)
    torch.manual_seed(cfg.seed)
    rng = np.random.default_rng(cfg.seed)
    images, labels = make_images(cfg.per_class_train, cfg.size, rng)
    test_images, test_labels = make_images(cfg.per_class_test, cfg.size, rng)
    order = rng.permutation(len(labels))
    n_val = int(cfg.val_fraction * len(labels))
    val_idx, train_idx = order[:n_val], order[n_val:]
    mean = images[train_idx].mean((0, 1, 2)) / 255.0
    std = images[train_idx].std((0, 1, 2)) / 255.0

    train_set = Pictograms(images[train_idx], labels[train_idx], mean, std, augment=True, seed=cfg.seed)
    val_set = Pictograms(images[val_idx], labels[val_idx], mean, std, augment=False)
    test_set = Pictograms(test_images, test_labels, mean, std, augment=False)
    train_loader = DataLoader(train_set, cfg.batch_size, shuffle=True, drop_last=True)
    val_loader = DataLoader(val_set, 128)
    test_loader = DataLoader(test_set, 40)

    model = ResNet(cfg.width, len(CLASSES))
    optimizer = torch.optim.SGD(model.parameters(), lr=cfg.max_lr, momentum=cfg.momentum,
                                weight_decay=cfg.weight_decay, nesterov=True)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, cfg.max_lr, epochs=cfg.epochs,
                                                    steps_per_epoch=len(train_loader), pct_start=0.3)
    best_acc, best_state = 0.0, None
    start = time.time()
    for epoch in range(cfg.epochs):
        train_loss = train_epoch(model, train_loader, optimizer, scheduler)
        val_loss, val_acc = evaluate(model, val_loader)
        lr = optimizer.param_groups[0]["lr"]
        print(f"epoch {epoch + 1:2d}  lr {lr:.4f}  train {train_loss:.4f}  val {val_loss:.4f}  "
              f"val acc {val_acc:.3f}  ({time.time() - start:.1f}s)")
        if val_acc > best_acc:
            best_acc, best_state = val_acc, copy.deepcopy(model.state_dict())
    model.load_state_dict(best_state)
    test_loss, test_acc = evaluate(model, test_loader)
    print(f"best val acc {best_acc:.3f}  test loss {test_loss:.4f}  test acc {test_acc:.3f}")


if __name__ == "__main__":
    main(Config())
