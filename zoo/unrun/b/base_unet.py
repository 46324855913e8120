"""Pet foreground segmentation with a small U-Net (Oxford-IIIT Pet)."""
import copy
import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torchvision.transforms.functional as TF
from torch.utils.data import DataLoader, Dataset, Subset
from torchvision.datasets import OxfordIIITPet
from torchvision.transforms import ColorJitter, InterpolationMode

random.seed(0)
np.random.seed(0)
torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

SIZE, BATCH, EPOCHS, LR, IGNORE = 128, 32, 25, 1e-3, 255
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


class PetSeg(Dataset):
    def __init__(self, split, train):
        self.base = OxfordIIITPet("data", split=split, target_types="segmentation", download=True)
        self.train = train
        self.jitter = ColorJitter(0.2, 0.2, 0.2)

    def __len__(self):
        return len(self.base)

    def __getitem__(self, i):
        img, mask = self.base[i]
        img = TF.resize(img.convert("RGB"), [SIZE, SIZE], InterpolationMode.BILINEAR)
        mask = TF.resize(mask, [SIZE, SIZE], InterpolationMode.NEAREST)
        if self.train:
            if random.random() < 0.5:
                img, mask = TF.hflip(img), TF.hflip(mask)
            img = self.jitter(img)
        x = TF.normalize(TF.to_tensor(img), MEAN, STD)
        # trimap: 1 = pet, 2 = background, 3 = border
        y = torch.from_numpy(np.array(mask)).long() - 1
        y[y == 2] = IGNORE
        return x, y


def block(c_in, c_out):
    return nn.Sequential(
        nn.Conv2d(c_in, c_out, 3, padding=1, bias=False), nn.BatchNorm2d(c_out), nn.ReLU(inplace=True),
        nn.Conv2d(c_out, c_out, 3, padding=1, bias=False), nn.BatchNorm2d(c_out), nn.ReLU(inplace=True),
    )


class UNet(nn.Module):
    def __init__(self, classes=2, width=32):
        super().__init__()
        self.d1, self.d2, self.d3 = block(3, width), block(width, 2 * width), block(2 * width, 4 * width)
        self.up2 = nn.ConvTranspose2d(4 * width, 2 * width, 2, stride=2)
        self.u2 = block(4 * width, 2 * width)
        self.up1 = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.u1 = block(2 * width, width)
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, x):
        a = self.d1(x)
        b = self.d2(F.max_pool2d(a, 2))
        c = self.d3(F.max_pool2d(b, 2))
        b = self.u2(torch.cat([self.up2(c), b], dim=1))
        a = self.u1(torch.cat([self.up1(b), a], dim=1))
        return self.head(a)


def dice_score(logits, y):
    valid = (y != IGNORE).float()
    p = logits.softmax(dim=1)[:, 0] * valid
    t = (y == 0).float()
    inter = (p * t).sum(dim=(1, 2))
    return ((2 * inter + 1) / (p.sum(dim=(1, 2)) + t.sum(dim=(1, 2)) + 1)).mean()


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    inter = union = 0
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        pred = model(x).argmax(dim=1)
        valid = y != IGNORE
        inter += ((pred == 0) & (y == 0) & valid).sum().item()
        union += (((pred == 0) | (y == 0)) & valid).sum().item()
    return inter / max(union, 1)


train_full, val_full = PetSeg("trainval", True), PetSeg("trainval", False)
perm = torch.randperm(len(train_full), generator=torch.Generator().manual_seed(1)).tolist()
n_val = len(perm) // 5
train_set = Subset(train_full, perm[n_val:])
val_set = Subset(val_full, perm[:n_val])
train_loader = DataLoader(train_set, batch_size=BATCH, shuffle=True, num_workers=4)
val_loader = DataLoader(val_set, batch_size=BATCH, num_workers=4)
test_loader = DataLoader(PetSeg("test", False), batch_size=BATCH, num_workers=4)

model = UNet().to(device)
opt = torch.optim.AdamW(model.parameters(), lr=LR, weight_decay=1e-4)
sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=LR, total_steps=EPOCHS * len(train_loader))

best, best_state = -1.0, None
for epoch in range(EPOCHS):
    model.train()
    running = 0.0
    for x, y in train_loader:
        x, y = x.to(device), y.to(device)
        opt.zero_grad()
        logits = model(x)
        loss = F.cross_entropy(logits, y, ignore_index=IGNORE) + (1 - dice_score(logits, y))
        loss.backward()
        opt.step()
        sched.step()
        running += loss.item()
    iou = evaluate(model, val_loader)
    print(f"epoch {epoch:2d} loss {running / len(train_loader):.4f} val IoU {iou:.4f}")
    if iou > best:
        best, best_state = iou, copy.deepcopy(model.state_dict())

torch.save(best_state, "unet_best.pt")
model.load_state_dict(best_state)
print(f"test IoU {evaluate(model, test_loader):.4f}")
