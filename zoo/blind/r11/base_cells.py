# Cell segmentation with a small U-Net (BCE + Dice), SGD with momentum and gradient clipping.
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)
torch.manual_seed(2)

SIZE = 32
EPOCHS = 8
LR = 0.1
CLIP = 5.0


def make_slide(rng):
    yy, xx = np.mgrid[0:SIZE, 0:SIZE]
    mask = np.zeros((SIZE, SIZE), bool)
    img = rng.normal(0, 0.25, (SIZE, SIZE)) + rng.uniform(-0.2, 0.2)
    for _ in range(rng.integers(1, 4)):
        cy, cx = rng.uniform(4, SIZE - 4, 2)
        ry, rx = rng.uniform(3, 6, 2)
        cell = ((yy - cy) / ry) ** 2 + ((xx - cx) / rx) ** 2 < 1
        img[cell] += rng.uniform(0.5, 0.9)
        mask |= cell
    # bright thin streaks are debris, not cells
    r = rng.integers(0, SIZE)
    img[r] += 0.8
    return img.astype(np.float32), mask.astype(np.float32)


class Slides(Dataset):
    def __init__(self, n, seed, augment=False):
        rng = np.random.default_rng(seed)
        self.data = [make_slide(rng) for _ in range(n)]
        self.augment = augment

    def __len__(self):
        return len(self.data)

    def __getitem__(self, i):
        img, mask = [torch.from_numpy(a)[None] for a in self.data[i]]
        if self.augment:
            if torch.rand(1) < 0.5:
                img, mask = img.flip(2), mask.flip(2)
            if torch.rand(1) < 0.5:
                img, mask = img.flip(1), mask.flip(1)
        return img, mask


def conv(cin, cout):
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, padding=1), nn.BatchNorm2d(cout), nn.ReLU(inplace=True))


class UNet(nn.Module):
    def __init__(self, c=12):
        super().__init__()
        self.d1, self.d2, self.mid = conv(1, c), conv(c, 2 * c), conv(2 * c, 2 * c)
        self.u2, self.u1 = conv(4 * c, c), conv(2 * c, c)
        self.out = nn.Conv2d(c, 1, 1)

    def forward(self, x):
        a = self.d1(x)
        b = self.d2(F.max_pool2d(a, 2))
        m = self.mid(F.max_pool2d(b, 2))
        x = self.u2(torch.cat([F.interpolate(m, scale_factor=2), b], 1))
        x = self.u1(torch.cat([F.interpolate(x, scale_factor=2), a], 1))
        return self.out(x)


def dice_coeff(prob, target, eps=1.0):
    inter = (prob * target).sum((1, 2, 3))
    return (2 * inter + eps) / (prob.sum((1, 2, 3)) + target.sum((1, 2, 3)) + eps)


def seg_loss(logits, target):
    bce = F.binary_cross_entropy_with_logits(logits, target)
    return bce + 1 - dice_coeff(torch.sigmoid(logits), target).mean()


def evaluate(model, loader):
    model.eval()
    loss, dice, inter, union, n = 0.0, 0.0, 0.0, 0.0, 0
    with torch.no_grad():
        for x, y in loader:
            logits = model(x)
            pred = (logits > 0).float()
            loss += seg_loss(logits, y).item() * len(x)
            dice += dice_coeff(pred, y).sum().item()
            inter += (pred * y).sum().item()
            union += (pred + y - pred * y).sum().item()
            n += len(x)
    return loss / n, dice / n, inter / union


train_loader = DataLoader(Slides(640, 1, augment=True), 32, shuffle=True)
val_loader = DataLoader(Slides(150, 2), 50)
test_loader = DataLoader(Slides(200, 3), 50)

model = UNet()
optimizer = torch.optim.SGD(model.parameters(), lr=LR, momentum=0.9, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.PolynomialLR(optimizer, EPOCHS, power=0.9)

for epoch in range(EPOCHS):
    model.train()
    total = 0.0
    for x, y in train_loader:
        loss = seg_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        total += loss.item()
    scheduler.step()
    vl, vd, vi = evaluate(model, val_loader)
    print(f"epoch {epoch}: train {total / len(train_loader):.3f}  val loss {vl:.3f}  dice {vd:.3f}  IoU {vi:.3f}")

tl, td, ti = evaluate(model, test_loader)
print(f"test loss {tl:.3f}  dice {td:.3f}  IoU {ti:.3f}")
