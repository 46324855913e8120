"""Small U-Net on synthetic 'cell' images: background, round cells, square debris, bright rims."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)
torch.manual_seed(7)
np.random.seed(7)

N_CLASSES = 4
SIZE = 32
EPOCHS = 10
BATCH = 16


def draw_scene(rng):
    yy, xx = np.mgrid[0:SIZE, 0:SIZE]
    img = 0.3 + 0.1 * np.sin(xx / rng.uniform(2, 6) + rng.uniform(0, 6)) + 0.25 * yy / SIZE
    mask = np.zeros((SIZE, SIZE), dtype=np.int64)
    for _ in range(rng.integers(1, 4)):
        cy, cx = rng.integers(5, SIZE - 5, 2)
        r = rng.integers(4, 7)
        kind = rng.choice([1, 2, 3], p=[0.5, 0.3, 0.2])
        if kind == 1:
            where = (yy - cy) ** 2 + (xx - cx) ** 2 <= r * r
            img[where] = 0.55
        elif kind == 2:
            where = (abs(yy - cy) <= r - 1) & (abs(xx - cx) <= r - 1)
            img[where] = 0.66
        else:
            d = np.sqrt((yy - cy) ** 2 + (xx - cx) ** 2)
            where = abs(d - r) <= 1.0
            img[where] = 0.65
        mask[where] = kind
    img = img + rng.normal(0, 0.06, img.shape)
    return img.astype(np.float32), mask


class CellDataset(Dataset):
    def __init__(self, n, seed, augment=False):
        rng = np.random.default_rng(seed)
        scenes = [draw_scene(rng) for _ in range(n)]
        self.images = torch.from_numpy(np.stack([s[0] for s in scenes]))
        self.masks = torch.from_numpy(np.stack([s[1] for s in scenes]))
        self.augment = augment

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        img, mask = self.images[i], self.masks[i]
        if self.augment:
            if torch.rand(1).item() < 0.5:
                img, mask = img.flip(1), mask.flip(1)
            if torch.rand(1).item() < 0.5:
                img = img + 0.05 * torch.randn(1)
        img = (img - 0.47) / 0.14
        return img.unsqueeze(0), mask


def double_conv(cin, cout):
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(),
        nn.Conv2d(cout, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU())


class UNet(nn.Module):
    def __init__(self, base=8):
        super().__init__()
        self.enc1 = double_conv(1, base)
        self.enc2 = double_conv(base, base * 2)
        self.mid = double_conv(base * 2, base * 4)
        self.dec2 = double_conv(base * 6, base * 2)
        self.dec1 = double_conv(base * 3, base)
        self.out = nn.Conv2d(base, N_CLASSES, 1)

    def forward(self, x):
        e1 = self.enc1(x)
        e2 = self.enc2(F.max_pool2d(e1, 2))
        m = self.mid(F.max_pool2d(e2, 2))
        d2 = self.dec2(torch.cat([F.interpolate(m, scale_factor=2), e2], 1))
        d1 = self.dec1(torch.cat([F.interpolate(d2, scale_factor=2), e1], 1))
        return self.out(d1)


def criterion(logits, mask, weight):
    flat_logits = logits.permute(0, 2, 3, 1).reshape(-1, N_CLASSES)
    ce = F.cross_entropy(flat_logits, mask.reshape(-1), weight=weight)
    probs = logits.softmax(1)
    onehot = F.one_hot(mask, N_CLASSES).permute(0, 3, 1, 2).float()
    inter = (probs * onehot).sum((0, 2, 3))
    dice = 1 - (2 * inter + 1) / (probs.sum((0, 2, 3)) + onehot.sum((0, 2, 3)) + 1)
    return ce + dice.mean()


@torch.no_grad()
def evaluate(model, loader, weight):
    model.eval()
    loss, seen = 0.0, 0
    inter = torch.zeros(N_CLASSES)
    union = torch.zeros(N_CLASSES)
    for img, mask in loader:
        logits = model(img)
        loss += criterion(logits, mask, weight).item() * len(img)
        seen += len(img)
        pred = logits.argmax(1)
        for c in range(N_CLASSES):
            inter[c] += ((pred == c) & (mask == c)).sum()
            union[c] += ((pred == c) | (mask == c)).sum()
    return loss / seen, (inter / union.clamp(min=1)).tolist()


train_set = CellDataset(320, seed=1, augment=True)
val_set = CellDataset(96, seed=2)
test_set = CellDataset(96, seed=3)
train_loader = DataLoader(train_set, BATCH, shuffle=True)
val_loader = DataLoader(val_set, 48)
test_loader = DataLoader(test_set, 48)

freq = torch.bincount(train_set.masks.reshape(-1), minlength=N_CLASSES).float()
class_weight = (freq.sum() / freq).sqrt()
class_weight = class_weight / class_weight.mean()
print("class frequencies", [round(v, 3) for v in (freq / freq.sum()).tolist()])

model = UNet()
opt = torch.optim.AdamW(model.parameters(), lr=2e-4, weight_decay=1e-4)
sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=8e-3, total_steps=EPOCHS * len(train_loader))

for epoch in range(EPOCHS):
    model.train()
    running, n = 0.0, 0
    for img, mask in train_loader:
        opt.zero_grad()
        loss = criterion(model(img), mask, class_weight)
        loss.backward()
        opt.step()
        sched.step()
        running += loss.item() * len(img)
        n += len(img)
    vl, iou = evaluate(model, val_loader, class_weight)
    print(f"epoch {epoch + 1:2d}  train {running / n:.4f}  val {vl:.4f}  mIoU {np.mean(iou):.3f}  lr {sched.get_last_lr()[0]:.5f}")

tl, iou = evaluate(model, test_loader, class_weight)
print(f"test loss {tl:.4f}  IoU per class {[round(v, 3) for v in iou]}  mIoU {np.mean(iou):.3f}")
