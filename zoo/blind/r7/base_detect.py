"""Grid detector: find bright shapes in small noisy images and regress their boxes."""
import copy
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(14)
torch.set_num_threads(1)

IMG, CELL, GRID, ANCHOR = 32, 4, 8, 8.0
EPOCHS, BATCH, EMA_DECAY = 7, 32, 0.97
gen = torch.Generator().manual_seed(41)


def draw(n):
    """Images with one or two textured rectangles; boxes are (cx, cy, w, h) in pixels."""
    images = 0.35 * torch.randn(n, 1, IMG, IMG, generator=gen)
    boxes = []
    for i in range(n):
        placed = []
        for _ in range(int(torch.randint(1, 3, (1,), generator=gen))):
            w = int(torch.randint(5, 15, (1,), generator=gen))
            h = int(torch.randint(5, 11, (1,), generator=gen))
            x = int(torch.randint(0, IMG - w + 1, (1,), generator=gen))
            y = int(torch.randint(0, IMG - h + 1, (1,), generator=gen))
            if any(abs(x + w / 2 - px) < (w + pw) / 2 + 1 and abs(y + h / 2 - py) < (h + ph) / 2 + 1
                   for px, py, pw, ph in placed):
                continue
            images[i, 0, y:y + h, x:x + w] += 1.5
            placed.append((x + w / 2, y + h / 2, float(w), float(h)))
        boxes.append(torch.tensor(placed))
    return images, boxes


def hflip(image, box):
    image = image.flip(-1)
    box = box.clone()
    box[:, 0] = IMG - box[:, 0]
    return image, box


def build_targets(boxes):
    obj = torch.zeros(len(boxes), GRID, GRID)
    reg = torch.zeros(len(boxes), 4, GRID, GRID)
    for b, rows in enumerate(boxes):
        for cx, cy, w, h in rows.tolist():
            gx, gy = min(int(cx // CELL), GRID - 1), min(int(cy // CELL), GRID - 1)
            obj[b, gy, gx] = 1.0
            reg[b, :, gy, gx] = torch.tensor([cx / CELL - gx, cy / CELL - gy, w / ANCHOR, h / ANCHOR])
            reg[b, 2:, gy, gx] = reg[b, 2:, gy, gx].log()
    return obj, reg


class Detector(nn.Module):
    def __init__(self, c=16):
        super().__init__()
        def conv(i, o, s, k=3):
            return nn.Sequential(nn.Conv2d(i, o, k, s, k // 2, bias=False), nn.BatchNorm2d(o), nn.ReLU())
        self.body = nn.Sequential(conv(1, c, 2, 5), conv(c, 2 * c, 2), conv(2 * c, 2 * c, 1, 5), conv(2 * c, 2 * c, 1))
        self.head = nn.Conv2d(2 * c, 5, 1)

    def forward(self, x):
        out = self.head(self.body(x))
        return out[:, 0], out[:, 1:]


def detection_loss(obj_logit, reg_pred, obj, reg):
    obj_loss = F.binary_cross_entropy_with_logits(obj_logit, obj, pos_weight=torch.tensor(5.0))
    mask = obj[:, None]
    box_loss = (F.smooth_l1_loss(reg_pred, reg, reduction="none") * mask).sum() / mask.sum().clamp(min=1)
    return obj_loss + 0.5 * box_loss, obj_loss, box_loss


def decode(obj_logit, reg_pred, threshold=0.6):
    """Per image: boxes above threshold with greedy non-maximum suppression."""
    results = []
    for logit, reg in zip(obj_logit, reg_pred):
        gy, gx = torch.nonzero(logit.sigmoid() > threshold, as_tuple=True)
        r = reg[:, gy, gx]
        boxes = torch.stack([(gx + r[0]) * CELL, (gy + r[1]) * CELL, r[2].exp() * ANCHOR, r[3].exp() * ANCHOR], 1)
        order = logit[gy, gx].argsort(descending=True)
        keep = []
        for i in order.tolist():
            if all(iou(boxes[i:i + 1], boxes[j:j + 1]).item() < 0.3 for j in keep):
                keep.append(i)
        results.append(boxes[keep])
    return results


def iou(a, b):
    a1, a2 = a[:, None, :2] - a[:, None, 2:] / 2, a[:, None, :2] + a[:, None, 2:] / 2
    b1, b2 = b[None, :, :2] - b[None, :, 2:] / 2, b[None, :, :2] + b[None, :, 2:] / 2
    inter = (torch.minimum(a2, b2) - torch.maximum(a1, b1)).clamp(min=0).prod(-1)
    return inter / ((a[:, 2] * a[:, 3])[:, None] + (b[:, 2] * b[:, 3])[None] - inter)


@torch.no_grad()
def evaluate(net, images, boxes):
    net.eval()
    obj_logit, reg_pred = net(images)
    loss = detection_loss(obj_logit, reg_pred, *build_targets(boxes))[0].item()
    tp = n_pred = n_true = 0
    for found, truth in zip(decode(obj_logit, reg_pred), boxes):
        n_pred, n_true = n_pred + len(found), n_true + len(truth)
        if len(found):
            tp += (iou(found, truth).max(0).values > 0.5).sum().item()
    precision, recall = tp / max(n_pred, 1), tp / n_true
    return loss, precision, recall, 2 * tp / (n_pred + n_true)


train_img, train_box = draw(700)
val_img, val_box = draw(150)
test_img, test_box = draw(200)

net = Detector()
ema = copy.deepcopy(net).requires_grad_(False)
opt = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=1e-3)
steps = len(train_img) // BATCH
sched = torch.optim.lr_scheduler.OneCycleLR(opt, 8e-3, total_steps=EPOCHS * steps)

for epoch in range(EPOCHS):
    net.train()
    perm = torch.randperm(len(train_img))
    total = 0.0
    for i in range(steps):
        pairs = []
        for j in perm[i * BATCH:(i + 1) * BATCH].tolist():
            pair = (train_img[j], train_box[j])
            pairs.append(hflip(*pair) if torch.rand(()) < 0.5 else pair)
        images, boxes = torch.stack([p[0] for p in pairs]), [p[1] for p in pairs]
        loss, _, _ = detection_loss(*net(images), *build_targets(boxes))
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        with torch.no_grad():
            for pe, pn in zip(ema.parameters(), net.parameters()):
                pe.lerp_(pn, 1 - EMA_DECAY)
            for be, bn in zip(ema.buffers(), net.buffers()):
                be.copy_(bn)
        total += loss.item()
    val_loss, p, r, f1 = evaluate(ema, val_img, val_box)
    print(f"epoch {epoch:2d} train {total / steps:.4f} val {val_loss:.4f} precision {p:.3f} recall {r:.3f} f1 {f1:.3f}")

test_loss, p, r, f1 = evaluate(ema, test_img, test_box)
print(f"test loss {test_loss:.4f} precision {p:.3f} recall {r:.3f} f1@0.5 {f1:.3f}")
