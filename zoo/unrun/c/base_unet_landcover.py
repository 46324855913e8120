import random
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

NUM_CLASSES = 6
IGNORE = 255
MEAN = torch.tensor([0.35, 0.37, 0.34]).view(3, 1, 1)
STD = torch.tensor([0.18, 0.16, 0.15]).view(3, 1, 1)


class TileDataset(Dataset):
    """Tiles are stored as <scene>_<row>_<col>.npy, uint8 HWC images and uint8 HW masks."""

    def __init__(self, root, names, size=256, train=False):
        self.root, self.names, self.size, self.train = Path(root), names, size, train

    def __len__(self):
        return len(self.names)

    def augment(self, image, mask):
        if random.random() < 0.5:
            image, mask = image.flip(-1), mask.flip(-1)
        k = random.randint(0, 3)
        image = torch.rot90(image, k, (-2, -1))
        mask = torch.rot90(mask, k, (-2, -1))
        image = (image * random.uniform(0.8, 1.2)).clamp(0, 1)
        return image, mask

    def __getitem__(self, i):
        name = self.names[i]
        image = torch.from_numpy(np.load(self.root / "images" / f"{name}.npy")).float().permute(2, 0, 1) / 255.0
        mask = torch.from_numpy(np.load(self.root / "masks" / f"{name}.npy")).long()
        size = (self.size, self.size)
        image = F.interpolate(image[None], size=size, mode="bilinear", align_corners=False)[0]
        mask = F.interpolate(mask[None, None].float(), size=size, mode="nearest")[0, 0].long()
        if self.train:
            image, mask = self.augment(image, mask)
        return (image - MEAN) / STD, mask

def double_conv(cin, cout):
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True),
        nn.Conv2d(cout, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True),
    )

class UNet(nn.Module):
    def __init__(self, c=32):
        super().__init__()
        self.enc1, self.enc2, self.enc3 = double_conv(3, c), double_conv(c, 2 * c), double_conv(2 * c, 4 * c)
        self.mid = double_conv(4 * c, 8 * c)
        self.up3, self.dec3 = nn.ConvTranspose2d(8 * c, 4 * c, 2, 2), double_conv(8 * c, 4 * c)
        self.up2, self.dec2 = nn.ConvTranspose2d(4 * c, 2 * c, 2, 2), double_conv(4 * c, 2 * c)
        self.up1, self.dec1 = nn.ConvTranspose2d(2 * c, c, 2, 2), double_conv(2 * c, c)
        self.head = nn.Conv2d(c, NUM_CLASSES, 1)

    def forward(self, x):
        e1 = self.enc1(x)
        e2 = self.enc2(F.max_pool2d(e1, 2))
        e3 = self.enc3(F.max_pool2d(e2, 2))
        m = self.mid(F.max_pool2d(e3, 2))
        d3 = self.dec3(torch.cat([self.up3(m), e3], dim=1))
        d2 = self.dec2(torch.cat([self.up2(d3), e2], dim=1))
        d1 = self.dec1(torch.cat([self.up1(d2), e1], dim=1))
        return self.head(d1)

def dice_loss(logits, target, eps=1.0):
    valid = (target != IGNORE).unsqueeze(1)
    onehot = F.one_hot(target.clamp(max=NUM_CLASSES - 1), NUM_CLASSES).permute(0, 3, 1, 2) * valid
    probs = logits.softmax(dim=1) * valid
    inter = (probs * onehot).sum(dim=(0, 2, 3))
    total = probs.sum(dim=(0, 2, 3)) + onehot.sum(dim=(0, 2, 3))
    return 1 - ((2 * inter + eps) / (total + eps)).mean()

class Trainer:
    def __init__(self, model, train_loader, val_loader, epochs, lr=3e-4, device="cuda"):
        self.model = model.to(device)
        self.train_loader, self.val_loader = train_loader, val_loader
        self.epochs, self.device = epochs, device
        self.criterion = nn.CrossEntropyLoss(ignore_index=IGNORE)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=lr, weight_decay=1e-2)
        max_iters = epochs * len(train_loader)
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda it: (1 - it / max_iters) ** 0.9)
        self.best = 0.0

    def train_epoch(self):
        self.model.train()
        total = 0.0
        for x, y in self.train_loader:
            x, y = x.to(self.device), y.to(self.device)
            logits = self.model(x)
            loss = self.criterion(logits, y) + dice_loss(logits, y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.scheduler.step()
            total += loss.item()
        return total / len(self.train_loader)

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        conf = torch.zeros(NUM_CLASSES, NUM_CLASSES, dtype=torch.long)
        for x, y in self.val_loader:
            pred = self.model(x.to(self.device)).argmax(dim=1).cpu()
            keep = y != IGNORE
            index = y[keep] * NUM_CLASSES + pred[keep]
            conf += torch.bincount(index, minlength=NUM_CLASSES ** 2).view(NUM_CLASSES, NUM_CLASSES)
        inter = conf.diag().float()
        union = conf.sum(0) + conf.sum(1) - conf.diag()
        return (inter / union.clamp(min=1)).mean().item()

    def fit(self, path="unet_best.pt"):
        for epoch in range(self.epochs):
            loss, miou = self.train_epoch(), self.validate()
            print(f"[{epoch:03d}] train {loss:.4f} | mIoU {miou:.4f}")
            if miou > self.best:
                self.best = miou
                torch.save(self.model.state_dict(), path)


if __name__ == "__main__":
    random.seed(7)
    torch.manual_seed(7)
    root = Path("data/landcover")
    names = sorted(p.stem for p in (root / "images").glob("*.npy"))
    scenes = sorted({n.split("_")[0] for n in names})
    random.shuffle(scenes)
    val_scenes = set(scenes[: len(scenes) // 5])
    train_names = [n for n in names if n.split("_")[0] not in val_scenes]
    val_names = [n for n in names if n.split("_")[0] in val_scenes]
    train_loader = DataLoader(TileDataset(root, train_names, train=True), 16, shuffle=True, num_workers=8, drop_last=True)
    val_loader = DataLoader(TileDataset(root, val_names), 16, num_workers=8)
    Trainer(UNet(), train_loader, val_loader, epochs=80).fit()
