import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

CLASSES = ("left", "right", "up", "down")
SIZE = 14


def draw(kind, rng):
    """Grey image with an arrow: a shaft and a head."""
    img = np.full((SIZE, SIZE), rng.uniform(110, 150))
    c, half = SIZE // 2 + rng.integers(-1, 2), 4
    img[c, c - half:c + half] = 205
    for d in range(3):
        img[c - d, c - half + d] = img[c + d, c - half + d] = 205
    img = {"left": img, "right": img[:, ::-1], "up": img.T, "down": img.T[::-1]}[kind].copy()
    return (img + rng.normal(0, 22, img.shape)).clip(0, 255)


class Arrows(Dataset):
    def __init__(self, images, labels, augment, seed=0):
        self.images = images
        self.labels = labels
        self.augment = augment
        self.rng = np.random.default_rng(seed)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        img = self.images[i].copy()
        if self.augment:
            img *= self.rng.uniform(0.8, 1.25)
            img += self.rng.normal(0, 0.25, img.shape)
            if self.rng.random() < 0.7:
                r, c = self.rng.integers(0, SIZE - 5, 2)
                img[r:r + 6, c:c + 6] = 0
            img = np.roll(img, self.rng.integers(-1, 2), axis=1)
        return torch.tensor(img, dtype=torch.float32)[None], self.labels[i]


class SmallCNN(nn.Module):
    def __init__(self, n_classes):
        super().__init__()
        self.c1 = nn.Conv2d(1, 8, 3, padding=1)
        self.c2 = nn.Conv2d(8, 16, 3, padding=1)
        self.head = nn.Linear(16 * 9, n_classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.c1(x)), 2)
        x = F.max_pool2d(F.relu(self.c2(x)), 2)
        return self.head(x.flatten(1))


def run_validation(model, loader):
    model.eval()
    n = hits = 0
    loss = 0.0
    with torch.no_grad():
        for x, y in loader:
            out = model(x)
            loss += F.cross_entropy(out, y, reduction="sum").item()
            hits += (out.argmax(1) == y).sum().item()
            n += len(y)
    return loss / n, hits / n


def main():
    torch.manual_seed(11)
    rng = np.random.default_rng(11)
    labels = rng.integers(0, 4, 1000)
    images = np.stack([draw(CLASSES[k], rng) for k in labels])
    idx = rng.permutation(len(labels))
    train_idx, val_idx = idx[:700], idx[700:]
    mean, std = images[train_idx].mean(), images[train_idx].std()
    images_train = (images[train_idx] - mean) / std
    images_val = (images[val_idx] - mean) / std
    train_set = Arrows(images_train, labels[train_idx], augment=True)
    val_set = Arrows(images_val, labels[val_idx], augment=False)
    train_loader = DataLoader(train_set, batch_size=50, shuffle=True, num_workers=0)
    val_loader = DataLoader(val_set, batch_size=100, num_workers=0)

    model = SmallCNN(len(CLASSES))
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(1, 13):
        model.train()
        seen = right = total = 0
        for x, y in train_loader:
            out = model(x)
            loss = F.cross_entropy(out, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(y)
            right += (out.argmax(1) == y).sum().item()
            seen += len(y)
        vl, va = run_validation(model, val_loader)
        print(f"epoch {epoch:2d}  train {total / seen:.3f} acc {right / seen:.3f}  val {vl:.3f} acc {va:.3f}")


if __name__ == "__main__":
    main()
