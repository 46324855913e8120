"""Small ResNet on rendered 16x16 glyphs."""
import argparse
import math
import random
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

GLYPHS = {
    "ell": ["#....", "#....", "#....", "#....", "####."],
    "jay": ["....#", "....#", "....#", "....#", ".####"],
    "bee": ["#....", "#....", "###..", "#..#.", "###.."],
    "dee": ["....#", "....#", "..###", ".#..#", "..###"],
    "plus": ["..#..", "..#..", "#####", "..#..", "..#.."],
    "ring": [".###.", "#...#", "#...#", "#...#", ".###."],
    "seven": ["####.", "...#.", "..#..", ".#...", ".#..."],
    "ex": ["#...#", ".#.#.", "..#..", ".#.#.", "#...#"],
}
CLASSES = list(GLYPHS)
MEAN, STD = 0.36, 0.22


def render(rng, cls):
    g = np.array([[c == "#" for c in row] for row in GLYPHS[CLASSES[cls]]], dtype=np.float32)
    g = np.kron(g, np.ones((2, 2), dtype=np.float32))
    img = np.full((16, 16), rng.uniform(40, 90), dtype=np.float32)
    y, x = rng.integers(1, 6, size=2)
    img[y:y + 10, x:x + 10] += g * rng.uniform(60, 130)
    img += rng.normal(0, 50, size=img.shape)
    return np.clip(img, 0, 255).astype(np.uint8)


def make_split(seed, n):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, len(CLASSES), size=n)
    x = np.stack([render(rng, c) for c in y])
    return x, y


class TrainTransform:
    def __init__(self, seed):
        self.rng = random.Random(seed)

    def __call__(self, img):
        img = torch.from_numpy(img).float()
        # brightness + small shift
        img = img + self.rng.uniform(-25, 25)
        img = img.clamp(0, 255)
        dy, dx = self.rng.randint(-1, 1), self.rng.randint(-1, 1)
        img = torch.roll(img, shifts=(dy, dx), dims=(0, 1))
        return ((img / 255.0 - MEAN) / STD).unsqueeze(0)


class ValTransform:
    def __call__(self, img):
        img = torch.from_numpy(img).float().div(255.0)
        return img.sub(MEAN).div(STD).unsqueeze(0)


class GlyphDataset(Dataset):
    def __init__(self, x, y, transform):
        self.x, self.y, self.transform = x, y, transform

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.transform(self.x[i]), int(self.y[i])


class BasicBlock(nn.Module):
    def __init__(self, cin, cout, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(cout)
        self.conv2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(cout)
        self.down = None
        if stride != 1 or cin != cout:
            self.down = nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False), nn.BatchNorm2d(cout))

    def forward(self, x):
        idt = x if self.down is None else self.down(x)
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        return F.relu(out + idt)


class SmallResNet(nn.Module):
    def __init__(self, num_classes, width=10):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU())
        self.layer1 = BasicBlock(width, width)
        self.layer2 = BasicBlock(width, 2 * width, 2)
        self.layer3 = BasicBlock(2 * width, 4 * width, 2)
        self.fc = nn.Linear(4 * width, num_classes)

    def forward(self, x):
        x = self.layer3(self.layer2(self.layer1(self.stem(x))))
        return self.fc(x.mean(dim=(2, 3)))


def mixup(x, y, alpha, num_classes):
    lam = float(np.random.beta(alpha, alpha))
    perm = torch.randperm(x.size(0))
    onehot = F.one_hot(y, num_classes).float()
    mixed = lam * x + (1 - lam) * x[perm]
    target = lam * onehot + (1 - lam) * onehot[perm]
    return mixed, target


def train_one_epoch(model, loader, optimizer, scheduler, args):
    model.train()
    total, n = 0.0, 0
    for x, y in loader:
        x, target = mixup(x, y, args.mixup, len(CLASSES))
        loss = F.cross_entropy(model(x), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        total += loss.item() * x.size(0)
        n += x.size(0)
    return total / n


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    correct, total, loss = 0, 0, 0.0
    for x, y in loader:
        logits = model(x)
        loss += F.cross_entropy(logits, y, reduction="sum").item()
        correct += (logits.argmax(1) == y).sum().item()
        total += y.numel()
    return loss / total, correct / total


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=13)
    p.add_argument("--batch-size", type=int, default=48)
    p.add_argument("--lr", type=float, default=0.06)
    p.add_argument("--mixup", type=float, default=1.0)
    p.add_argument("--seed", type=int, default=3)
    args = p.parse_args()

    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)

    xtr, ytr = make_split(100, 1250)
    xva, yva = make_split(101, 500)
    train_loader = DataLoader(GlyphDataset(xtr, ytr, TrainTransform(args.seed)), batch_size=args.batch_size, shuffle=True, drop_last=True)
    val_loader = DataLoader(GlyphDataset(xva, yva, ValTransform()), batch_size=250)

    model = SmallResNet(len(CLASSES))
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, weight_decay=5e-4, nesterov=True)
    total_steps = args.epochs * len(train_loader)
    scheduler = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda s: 0.5 * (1 + math.cos(math.pi * min(1.0, s / total_steps))))

    best = 0.0
    for epoch in range(args.epochs):
        tr_loss = train_one_epoch(model, train_loader, optimizer, scheduler, args)
        va_loss, va_acc = evaluate(model, val_loader)
        best = max(best, va_acc)
        print(f"epoch {epoch + 1:2d} | train loss {tr_loss:.4f} | val loss {va_loss:.4f} | val acc {va_acc:.4f}")
    print(f"best val acc {best:.4f}")


if __name__ == "__main__":
    main()
