"""Blobs and rings on a noisy background: small U-Net, BCE + Dice, void pixels, bfloat16 autocast."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)
torch.manual_seed(8)
SIZE, VOID = 32, 255


def draw(g):
    yy, xx = torch.meshgrid(torch.arange(SIZE), torch.arange(SIZE), indexing="ij")
    img = torch.randn(1, SIZE, SIZE, generator=g) * 0.55
    img += torch.linspace(-0.5, 0.5, SIZE).view(1, 1, -1) * torch.randn((), generator=g)
    mask = torch.zeros(SIZE, SIZE, dtype=torch.uint8)
    for _ in range(int(torch.randint(1, 4, (), generator=g))):
        cy, cx = (torch.rand(2, generator=g) * SIZE).tolist()
        r = 2.5 + 3.5 * torch.rand((), generator=g).item()
        d = ((yy - cy) ** 2 + (xx - cx) ** 2).sqrt()
        if torch.rand((), generator=g) < 0.5:
            img[0][d < r] += 1.0
            mask[d < r] = 1
        else:                                        # rings are not wanted
            img[0][(d < r) & (d > r - 1.6)] += 1.0
    edge = F.max_pool2d(mask[None, None].float(), 3, 1, 1)[0, 0] - mask.float() > 0
    mask[edge] = VOID
    return img, mask


class Shapes(Dataset):
    def __init__(self, n, seed, augment=False):
        g = torch.Generator().manual_seed(seed)
        pairs = [draw(g) for _ in range(n)]
        self.images = torch.stack([p[0] for p in pairs])
        self.masks = torch.stack([p[1] for p in pairs])
        self.augment = augment

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        image, mask = self.images[i], self.masks[i]
        if self.augment:
            image = image + 0.35 * torch.randn_like(image)
            if torch.rand(()) < 0.5:
                image, mask = image.flip(-1), mask.flip(-1)
            if torch.rand(()) < 0.5:
                image, mask = image.flip(-2), mask.flip(-2)
        return {"image": image, "mask": mask.long()}


def double(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU(inplace=True),
                         nn.Conv2d(o, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU(inplace=True))


class UNet(nn.Module):
    def __init__(self, w=8):
        super().__init__()
        self.d1, self.d2, self.d3 = double(1, w), double(w, 2 * w), double(2 * w, 4 * w)
        self.u2, self.u1 = double(6 * w, 2 * w), double(3 * w, w)
        self.out = nn.Conv2d(w, 1, 1)

    def forward(self, x):
        a = self.d1(x)
        b = self.d2(F.max_pool2d(a, 2))
        c = self.d3(F.max_pool2d(b, 2))
        up = F.interpolate(c, scale_factor=2)
        b = self.u2(torch.cat([up, b], 1))
        up = F.interpolate(b, scale_factor=2)
        a = self.u1(torch.cat([up, a], 1))
        return self.out(a).squeeze(1)


def dice_loss(logits, target, valid):
    p = torch.sigmoid(logits) * valid
    t = target * valid
    inter = (p * t).sum(dim=(1, 2))
    return (1 - (2 * inter + 1) / (p.sum(dim=(1, 2)) + t.sum(dim=(1, 2)) + 1)).mean()


def loss_fn(logits, mask):
    valid = (mask != VOID).float()
    target = (mask == 1).float()
    bce = F.binary_cross_entropy_with_logits(logits, target, reduction="none")
    bce = (bce * valid).sum() / valid.sum()
    return bce + dice_loss(logits, target, valid)


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    inter = union = 0
    losses = []
    for batch in loader:
        logits, mask = model(batch["image"]), batch["mask"]
        losses.append(loss_fn(logits, mask).item())
        pred = (logits > 0) & (mask != VOID)
        inter += (pred & (mask == 1)).sum().item()
        union += (pred | (mask == 1)).sum().item()
    return sum(losses) / len(losses), inter / union


train_loader = DataLoader(Shapes(192, seed=1, augment=True), batch_size=16, shuffle=True)
val_loader = DataLoader(Shapes(64, seed=2), batch_size=32)
test_loader = DataLoader(Shapes(160, seed=3), batch_size=32)

model = UNet()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-3)
EPOCHS = 8
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=6e-3, total_steps=EPOCHS * len(train_loader))

for epoch in range(EPOCHS):
    model.train()
    seen = 0.0
    for batch in train_loader:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = model(batch["image"])
        loss = loss_fn(logits.float(), batch["mask"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        seen += loss.item()
    val_loss, val_iou = evaluate(model, val_loader)
    print(f"epoch {epoch} train {seen / len(train_loader):.4f} val {val_loss:.4f} IoU {val_iou:.3f}")

test_loss, test_iou = evaluate(model, test_loader)
print(f"test loss {test_loss:.4f} IoU {test_iou:.3f}")
