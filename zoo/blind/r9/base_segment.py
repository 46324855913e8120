"""Segmentation of synthetic cell images into background, nucleus, fibre and plate with a small U-Net."""
import random
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
random.seed(4); np.random.seed(4); torch.manual_seed(4)

SIZE, CLASSES = 32, ("background", "nucleus", "fibre", "plate")
N_TRAIN, N_VAL, BATCH, EPOCHS = 360, 90, 18, 10


def draw(rng):
    yy, xx = np.mgrid[:SIZE, :SIZE]
    mask = np.zeros((SIZE, SIZE), np.int64)
    img = 0.3 + 0.15 * np.sin(xx / rng.uniform(4, 9) + rng.uniform(0, 6)) * np.cos(yy / rng.uniform(4, 9))
    for _ in range(rng.integers(2, 5)):
        kind = rng.integers(1, 4)
        cx, cy = rng.uniform(5, SIZE - 5, 2)
        a = rng.uniform(0, np.pi)
        u = (xx - cx) * np.cos(a) + (yy - cy) * np.sin(a)
        v = -(xx - cx) * np.sin(a) + (yy - cy) * np.cos(a)
        if kind == 1:
            inside = u ** 2 + v ** 2 < rng.uniform(3, 5) ** 2
        elif kind == 2:
            inside = (np.abs(u) < rng.uniform(7, 11)) & (np.abs(v) < 1.3)
        else:
            inside = np.maximum(np.abs(u), np.abs(v)) < rng.uniform(3, 5)
        mask[inside] = kind
        img[inside] = rng.uniform(0.55, 0.85)
        if kind == 1:
            img[u ** 2 + v ** 2 < 2.5] = 0.2
    img = img + rng.normal(0, 0.06, img.shape)
    return (img * 255).clip(0, 255).astype(np.uint8), mask


def make(n, seed):
    rng = np.random.default_rng(seed)
    pairs = [draw(rng) for _ in range(n)]
    return np.stack([p[0] for p in pairs]), np.stack([p[1] for p in pairs])


def preprocess(img, mean, std):
    return (torch.from_numpy(img).float() / 255 - mean) / std


def augment(img, mask):
    if random.random() < 0.5:
        img, mask = img.flip(-1), mask.flip(-1)
    if random.random() < 0.5:
        img, mask = img.flip(-2), mask.flip(-2)
    k = random.randrange(4)
    return torch.rot90(img, k, (-2, -1)), torch.rot90(mask, k, (-2, -1))


def conv(i, o):
    return nn.Sequential(
        nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o, momentum=0.1), nn.ReLU(inplace=True))


class UNet(nn.Module):
    def __init__(self, w=8):
        super().__init__()
        self.e1 = nn.Sequential(conv(1, w), conv(w, w))
        self.e2 = nn.Sequential(conv(w, 2 * w), conv(2 * w, 2 * w))
        self.e3 = nn.Sequential(conv(2 * w, 4 * w), conv(4 * w, 4 * w))
        self.d2 = conv(6 * w, 2 * w)
        self.d1 = conv(3 * w, w)
        self.head = nn.Conv2d(w, len(CLASSES), 1)

    def forward(self, x):
        a = self.e1(x)
        b = self.e2(F.max_pool2d(a, 2))
        c = self.e3(F.max_pool2d(b, 2))
        up = lambda t: F.interpolate(t, scale_factor=2, mode="bilinear", align_corners=False)
        b = self.d2(torch.cat([up(c), b], 1))
        return self.head(self.d1(torch.cat([up(b), a], 1)))


class IoU:
    def __init__(self):
        self.cm = torch.zeros(len(CLASSES), len(CLASSES))

    def update(self, pred, target):
        k = len(CLASSES)
        self.cm += torch.bincount(k * target.flatten() + pred.flatten(), minlength=k * k).reshape(k, k)

    def value(self):
        inter = self.cm.diag()
        return inter / (self.cm.sum(0) + self.cm.sum(1) - inter).clamp(min=1)


xtr, ytr = make(N_TRAIN, 1)
xva, yva = make(N_VAL, 2)
MEAN, STD = xtr.mean() / 255, xtr.std() / 255
Xtr, Xva = preprocess(xtr, MEAN, STD), preprocess(xva, MEAN, STD)
Ytr, Yva = torch.from_numpy(ytr), torch.from_numpy(yva)
freq = np.bincount(ytr.ravel(), minlength=4) / ytr.size
print("class shares:", dict(zip(CLASSES, freq.round(3).tolist())))

model = UNet()
weights = torch.tensor(freq ** -0.5, dtype=torch.float32)
criterion = nn.CrossEntropyLoss(weight=weights / weights.mean())
optimizer = torch.optim.AdamW(model.parameters(), lr=6e-3, weight_decay=1e-3)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=3, gamma=0.3)

best = 0.0
for epoch in range(1, EPOCHS + 1):
    model.train()
    perm, running, meter = torch.randperm(N_TRAIN), 0.0, IoU()
    for i in range(0, N_TRAIN, BATCH):
        idx = perm[i:i + BATCH].tolist()
        pairs = [augment(Xtr[j], Ytr[j]) for j in idx]
        x = torch.stack([p[0] for p in pairs]).unsqueeze(1)
        y = torch.stack([p[1] for p in pairs])
        logits = model(x)
        loss = criterion(logits, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.item() * len(idx)
        meter.update(logits.argmax(1), y)
    scheduler.step()

    model.eval()
    val_meter, val_loss = IoU(), 0.0
    with torch.no_grad():
        for i in range(0, N_VAL, BATCH):
            logits = model(Xva[i:i + BATCH].unsqueeze(1))
            val_loss += criterion(logits, Yva[i:i + BATCH]).item() * len(logits)
            val_meter.update(logits.argmax(1), Yva[i:i + BATCH])
    iou = val_meter.value()
    best = max(best, iou.mean().item())
    print(f"epoch {epoch:2d}  loss {running / N_TRAIN:.3f}  train mIoU {meter.value().mean():.3f}  "
          f"val loss {val_loss / N_VAL:.3f}  val mIoU {iou.mean():.3f}  "
          + " ".join(f"{n[:4]} {v:.2f}" for n, v in zip(CLASSES, iou)))
print(f"best val mIoU {best:.3f}")
