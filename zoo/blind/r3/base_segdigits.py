"""Read the digits of a seven-segment display with a small residual net."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import Dataset, DataLoader

torch.manual_seed(7)
rng = np.random.default_rng(7)

SEG = {0: "abcdef", 1: "bc", 2: "abged", 3: "abgcd", 4: "fgbc", 5: "afgcd", 6: "afgecd", 7: "abc", 8: "abcdefg", 9: "abfgcd"}
BOX = {"a": (0, 1, 1, 5), "g": (4, 5, 1, 5), "d": (8, 9, 1, 5), "f": (1, 4, 0, 1), "b": (1, 4, 5, 6), "e": (5, 8, 0, 1), "c": (5, 8, 5, 6)}


def draw(digit):
    img = np.zeros((12, 12), dtype=np.float32)
    top, left = rng.integers(0, 3), rng.integers(0, 6)
    for s in SEG[digit]:
        r0, r1, c0, c1 = BOX[s]
        img[top + r0:top + r1, left + c0:left + c1] = rng.uniform(0.6, 1.0)
    return img + 0.15 * rng.standard_normal(img.shape).astype(np.float32)


def make_split(n):
    labels = rng.integers(0, 10, n)
    images = np.stack([draw(d) for d in labels])
    return torch.from_numpy(images)[:, None], torch.from_numpy(labels)


class Displays(Dataset):
    def __init__(self, images, labels, train):
        self.images, self.labels, self.train = images, labels, train

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        img = self.images[i].clone()
        if self.train:
            img = self.augment(img)
        return (img - 0.2) / 0.35, self.labels[i]

    def augment(self, img):
        img *= 0.5 + 0.6 * torch.rand(1)
        img += 0.15 * torch.randn_like(img)
        if torch.rand(1) < 0.5:
            r, c = torch.randint(0, 10, (2,)).tolist()
            img[:, r:r + 2, c:c + 2] = 0.0
        return img


class Block(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.c1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.b1 = nn.BatchNorm2d(cout)
        self.c2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
        self.b2 = nn.BatchNorm2d(cout)
        self.skip = nn.Conv2d(cin, cout, 1, stride, bias=False) if (stride != 1 or cin != cout) else nn.Identity()

    def forward(self, x):
        h = F.relu(self.b1(self.c1(x)))
        return F.relu(self.b2(self.c2(h)) + self.skip(x))


net = nn.Sequential(Block(1, 8, 1), Block(8, 16, 2), Block(16, 32, 2), nn.Flatten(), nn.Linear(32 * 9, 10))
train_set = Displays(*make_split(800), train=True)
val_set = Displays(*make_split(300), train=False)
train_loader = DataLoader(train_set, batch_size=40, shuffle=True)
val_loader = DataLoader(val_set, batch_size=100)

opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
sched = torch.optim.lr_scheduler.StepLR(opt, step_size=4, gamma=0.4)

for epoch in range(8):
    net.train()
    total, right, seen = 0.0, 0, 0
    for x, y in train_loader:
        logits = net(x)
        loss = F.cross_entropy(logits, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item() * len(y)
        right += (logits.argmax(1) == y).sum().item()
        seen += len(y)
    sched.step()

    net.eval()
    with torch.no_grad():
        hits = sum((net(x).argmax(1) == y).sum().item() for x, y in val_loader)
    print(f"epoch {epoch}  loss {total / seen:.4f}  train acc {right / seen:.3f}  val acc {hits / len(val_set):.3f}")
