import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SIZE = 28
CLASSES = ["square", "disc", "cross"]


def render(rng):
    """Returns image, class id and the box as (cx, cy, w, h) in pixels."""
    img = rng.normal(0.0, 0.15, size=(3, SIZE, SIZE))
    cls = rng.integers(3)
    w, h = rng.integers(7, 15, size=2)
    x0, y0 = rng.integers(0, SIZE - w), rng.integers(0, SIZE - h)
    yy, xx = np.mgrid[0:SIZE, 0:SIZE]
    u, v = (xx + 0.5 - x0) / w, (yy + 0.5 - y0) / h
    inside = (u > 0) & (u < 1) & (v > 0) & (v < 1)
    if cls == 1:
        inside &= (u - 0.5) ** 2 + (v - 0.5) ** 2 < 0.25
    elif cls == 2:
        inside &= (abs(u - 0.5) < 0.18) | (abs(v - 0.5) < 0.18)
    colour = rng.uniform(0.5, 1.2, size=3)
    img += inside[None] * colour[:, None, None]
    return img, cls, (x0 + w / 2, y0 + h / 2, w, h)


def build(n, seed):
    rng = np.random.default_rng(seed)
    imgs, cls, boxes = zip(*(render(rng) for _ in range(n)))
    imgs = torch.tensor(np.stack(imgs), dtype=torch.float32)
    boxes = torch.tensor(np.array(boxes), dtype=torch.float32) / SIZE
    return imgs, torch.tensor(cls), boxes


def augment(imgs, boxes):
    flip = torch.rand(len(imgs)) < 0.5
    imgs, boxes = imgs.clone(), boxes.clone()
    imgs[flip] = imgs[flip].flip(-1)
    boxes[flip, 0] = 1.0 - boxes[flip, 0]
    return imgs, boxes


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        def block(i, o):
            return nn.Sequential(nn.Conv2d(i, o, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU())
        self.backbone = nn.Sequential(block(3, 12), block(12, 24), block(24, 32), nn.Flatten())
        self.cls_head = nn.Sequential(nn.Linear(32 * 16, 32), nn.ReLU(), nn.Linear(32, len(CLASSES)))
        self.box_head = nn.Sequential(nn.Linear(32 * 16, 48), nn.ReLU(), nn.Linear(48, 4))

    def forward(self, x):
        feat = self.backbone(x)
        return self.cls_head(feat), torch.sigmoid(self.box_head(feat))


def corners(b):
    return torch.cat([b[:, :2] - b[:, 2:] / 2, b[:, :2] + b[:, 2:] / 2], dim=1)


def iou(a, b):
    a, b = corners(a), corners(b)
    inter = (torch.minimum(a[:, 2:], b[:, 2:]) - torch.maximum(a[:, :2], b[:, :2])).clamp(min=0).prod(1)
    area = lambda z: (z[:, 2:] - z[:, :2]).prod(1)
    return inter / (area(a) + area(b) - inter)


torch.manual_seed(0)
x_train, c_train, b_train = build(960, 1)
x_val, c_val, b_val = build(200, 2)

model = Detector()
opt = torch.optim.Adam(model.parameters(), lr=2e-3)
batch, epochs, lam = 32, 8, 10.0
for epoch in range(epochs):
    model.train()
    order = torch.randperm(len(x_train))
    tot_cls = tot_box = 0.0
    for i in range(0, len(order), batch):
        idx = order[i:i + batch]
        x, b = augment(x_train[idx], b_train[idx])
        logits, pred = model(x)
        cls_loss = F.cross_entropy(logits, c_train[idx])
        box_loss = F.smooth_l1_loss(pred, b, beta=0.1)
        loss = cls_loss + lam * box_loss
        opt.zero_grad()
        loss.backward()
        opt.step()
        tot_cls += cls_loss.item() * len(idx)
        tot_box += box_loss.item() * len(idx)
    model.eval()
    with torch.no_grad():
        logits, pred = model(x_val)
        acc = (logits.argmax(1) == c_val).float().mean().item()
        miou = iou(pred, b_val).mean().item()
    n = len(x_train)
    print(f"epoch {epoch + 1:02d} cls {tot_cls / n:.4f} box {tot_box / n:.5f} | val acc {acc:.3f} mean IoU {miou:.3f}")
