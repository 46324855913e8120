"""CIFAR-10 classification with a small ResNet, random crops/flips and mixup."""
import argparse
import math
import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Subset
from torchvision import datasets, transforms

MEAN = (0.4914, 0.4822, 0.4465)
STD = (0.2470, 0.2435, 0.2616)


class BasicBlock(nn.Module):
    def __init__(self, c_in, c_out, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(c_in, c_out, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(c_out)
        self.conv2 = nn.Conv2d(c_out, c_out, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(c_out)
        self.shortcut = nn.Identity()
        if stride != 1 or c_in != c_out:
            self.shortcut = nn.Sequential(
                nn.Conv2d(c_in, c_out, 1, stride=stride, bias=False),
                nn.BatchNorm2d(c_out),
            )

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        return F.relu(out + self.shortcut(x))


class ResNet(nn.Module):
    def __init__(self, blocks=(2, 2, 2), width=32, num_classes=10):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(width)
        stages, c_in = [], width
        for i, n in enumerate(blocks):
            c_out = width * 2 ** i
            for j in range(n):
                stages.append(BasicBlock(c_in, c_out, stride=2 if i > 0 and j == 0 else 1))
                c_in = c_out
        self.stages = nn.Sequential(*stages)
        self.fc = nn.Linear(c_in, num_classes)

    def forward(self, x):
        x = F.relu(self.bn(self.stem(x)))
        x = self.stages(x)
        x = x.mean(dim=(2, 3))
        return self.fc(x)


def set_seed(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def build_loaders(root, batch_size, seed):
    train_tf = transforms.Compose([
        transforms.RandomCrop(32, padding=4),
        transforms.RandomHorizontalFlip(),
        transforms.ToTensor(),
        transforms.Normalize(MEAN, STD),
    ])
    eval_tf = transforms.Compose([transforms.ToTensor(), transforms.Normalize(MEAN, STD)])
    train_full = datasets.CIFAR10(root, train=True, transform=train_tf, download=True)
    valid_full = datasets.CIFAR10(root, train=True, transform=eval_tf)
    test_set = datasets.CIFAR10(root, train=False, transform=eval_tf)
    perm = np.random.RandomState(seed).permutation(len(train_full))
    train_idx, valid_idx = perm[5000:], perm[:5000]
    train_dl = DataLoader(Subset(train_full, train_idx), batch_size, shuffle=True,
                          num_workers=4, drop_last=True)
    valid_dl = DataLoader(Subset(valid_full, valid_idx), 256, num_workers=4)
    test_dl = DataLoader(test_set, 256, num_workers=4)
    return train_dl, valid_dl, test_dl


def mixup(x, y, alpha=0.2):
    lam = np.random.beta(alpha, alpha)
    perm = torch.randperm(x.size(0), device=x.device)
    mixed = lam * x + (1 - lam) * x[perm]
    return mixed, y, y[perm], lam


def train_one_epoch(model, loader, optimizer, scheduler, device):
    model.train()
    total, n = 0.0, 0
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        x, y_a, y_b, lam = mixup(x, y)
        logits = model(x)
        loss = lam * F.cross_entropy(logits, y_a) + (1 - lam) * F.cross_entropy(logits, y_b)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        total += loss.item() * x.size(0)
        n += x.size(0)
    return total / n


@torch.no_grad()
def evaluate(model, loader, device):
    model.eval()
    loss_sum, correct, n = 0.0, 0, 0
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        logits = model(x)
        loss_sum += F.cross_entropy(logits, y, reduction="sum").item()
        correct += (logits.argmax(dim=1) == y).sum().item()
        n += y.size(0)
    return loss_sum / n, correct / n


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--root", default="./data")
    p.add_argument("--epochs", type=int, default=40)
    p.add_argument("--batch-size", type=int, default=128)
    p.add_argument("--lr", type=float, default=0.1)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--out", default="cifar_best.pt")
    args = p.parse_args()
    set_seed(args.seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    train_dl, valid_dl, test_dl = build_loaders(args.root, args.batch_size, args.seed)
    model = ResNet().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, weight_decay=5e-4)
    total_steps = args.epochs * len(train_dl)
    warmup = 2 * len(train_dl)

    def lr_lambda(step):
        if step < warmup:
            return (step + 1) / warmup
        return 0.5 * (1 + math.cos(math.pi * (step - warmup) / (total_steps - warmup)))

    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lr_lambda)
    best_acc = 0.0
    for epoch in range(args.epochs):
        train_loss = train_one_epoch(model, train_dl, optimizer, scheduler, device)
        val_loss, val_acc = evaluate(model, valid_dl, device)
        print(f"{epoch:03d} train {train_loss:.4f} val {val_loss:.4f} acc {val_acc:.4f}")
        if val_acc > best_acc:
            best_acc = val_acc
            torch.save({"model": model.state_dict(), "epoch": epoch, "acc": val_acc}, args.out)
    model.load_state_dict(torch.load(args.out, map_location=device)["model"])
    print("test: loss %.4f acc %.4f" % evaluate(model, test_dl, device))


if __name__ == "__main__":
    main()
