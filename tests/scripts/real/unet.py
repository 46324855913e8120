"""Segmentation in the manner of Pytorch-UNet: cross entropy plus Dice, RMSprop, ReduceLROnPlateau."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import optim
from torch.utils.data import DataLoader, TensorDataset, random_split

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--fault", default="")
args = parser.parse_args()
torch.manual_seed(0)


def scenes(count, size=16):
    grid = torch.arange(size).float()
    cx, cy = torch.rand(2, count, 1, 1) * (size - 6) + 3
    distance = (grid[None, :, None] - cx) ** 2 + (grid[None, None, :] - cy) ** 2
    masks = (distance < 12).long()
    return TensorDataset(masks[:, None] + 0.7 * torch.randn(count, 1, size, size), masks)


class DoubleConv(nn.Sequential):
    def __init__(self, i, o):
        super().__init__(
            nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True)
        )


class UNet(nn.Module):
    def __init__(self, n_classes=2):
        super().__init__()
        self.inc, self.down = DoubleConv(1, 8), DoubleConv(8, 16)
        self.up, self.outc = DoubleConv(24, 8), nn.Conv2d(8, n_classes, 1)

    def forward(self, x):
        x1 = self.inc(x)
        x2 = self.down(F.max_pool2d(x1, 2))
        x = torch.cat([x1, F.interpolate(x2, scale_factor=2)], 1)
        return self.outc(self.up(x))


def dice_coeff(pred, target, epsilon=1e-6):
    inter = 2 * (pred * target).sum(dim=(-1, -2))
    sets_sum = pred.sum(dim=(-1, -2)) + target.sum(dim=(-1, -2))
    return ((inter + epsilon) / (sets_sum + epsilon)).mean()


def dice_loss(pred, target):
    return 1 - dice_coeff(pred, target)


dataset = scenes(400)
train_set, val_set = random_split(dataset, [320, 80], generator=torch.Generator().manual_seed(0))
train_loader = DataLoader(train_set, batch_size=8, shuffle=True)
val_loader = DataLoader(val_set, batch_size=8, shuffle=False, drop_last=True)
model = UNet()
optimizer = optim.RMSprop(model.parameters(), lr=1e-3, weight_decay=1e-8, momentum=0.9)
scheduler = optim.lr_scheduler.ReduceLROnPlateau(optimizer, "max", patience=5)
criterion = nn.CrossEntropyLoss()
global_step = 0


@torch.inference_mode()
def evaluate():
    model.eval()
    dice_score = 0
    for image, mask_true in val_loader:
        mask_pred = model(image)
        one_hot = F.one_hot(mask_pred.argmax(dim=1), 2).permute(0, 3, 1, 2).float()
        truth = F.one_hot(mask_true, 2).permute(0, 3, 1, 2).float()
        dice_score += dice_coeff(one_hot[:, 1:], truth[:, 1:])
    model.train()
    return dice_score / len(val_loader)


for epoch in range(1, args.epochs + 1):
    model.train()
    for images, true_masks in train_loader:
        masks_pred = model(images)
        loss = criterion(masks_pred, true_masks)
        dimension = 0 if args.fault == "softmax-over-batch" else 1
        loss += dice_loss(
            F.softmax(masks_pred, dim=dimension).float(),
            F.one_hot(true_masks, 2).permute(0, 3, 1, 2).float(),
        )
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        global_step += 1
        print(f"step {global_step} loss (batch) {loss.item()}")
        if global_step % 20 == 0:
            val_score = evaluate()
            scheduler.step(val_score)
            print(f"Validation Dice score: {val_score}")
