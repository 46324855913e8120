"""Distil a CIFAR-10 ResNet teacher into a small convolutional student."""
import argparse
import copy
import os

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Subset
from torchvision import datasets, models, transforms

MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)


def block(cin, cout):
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, padding=1, bias=False),
        nn.BatchNorm2d(cout),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(2),
    )


class Student(nn.Module):
    def __init__(self, width=32, num_classes=10):
        super().__init__()
        self.features = nn.Sequential(block(3, width), block(width, 2 * width), block(2 * width, 4 * width))
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.drop = nn.Dropout(0.1)
        self.fc = nn.Linear(4 * width, num_classes)

    def forward(self, x):
        x = self.pool(self.features(x)).flatten(1)
        return self.fc(self.drop(x))


def build_teacher(path, device):
    teacher = models.resnet18(num_classes=10)
    teacher.conv1 = nn.Conv2d(3, 64, 3, padding=1, bias=False)
    teacher.maxpool = nn.Identity()
    teacher.load_state_dict(torch.load(path, map_location="cpu"))
    for p in teacher.parameters():
        p.requires_grad_(False)
    teacher.eval()
    return teacher.to(device)


def get_loaders(args):
    train_tf = transforms.Compose([
        transforms.RandomCrop(32, padding=4),
        transforms.RandomHorizontalFlip(),
        transforms.ToTensor(),
        transforms.Normalize(MEAN, STD),
    ])
    eval_tf = transforms.Compose([transforms.ToTensor(), transforms.Normalize(MEAN, STD)])
    train_aug = datasets.CIFAR10(args.data, train=True, download=True, transform=train_tf)
    train_plain = datasets.CIFAR10(args.data, train=True, transform=eval_tf)
    test_set = datasets.CIFAR10(args.data, train=False, transform=eval_tf)
    perm = np.random.RandomState(args.seed).permutation(len(train_aug))
    val_idx, train_idx = perm[:5000], perm[5000:]
    train_loader = DataLoader(Subset(train_aug, train_idx), args.batch_size, shuffle=True, num_workers=4)
    val_loader = DataLoader(Subset(train_plain, val_idx), 256, num_workers=4)
    return train_loader, val_loader, DataLoader(test_set, 256, num_workers=4)


def distillation_loss(student_logits, teacher_logits, labels, T, alpha):
    soft_targets = F.softmax(teacher_logits / T, dim=1)
    log_probs = F.log_softmax(student_logits / T, dim=1)
    kd = F.kl_div(log_probs, soft_targets, reduction="batchmean") * T * T
    ce = F.cross_entropy(student_logits, labels)
    return alpha * kd + (1 - alpha) * ce


@torch.no_grad()
def evaluate(model, loader, device):
    model.eval()
    correct = total = 0
    for x, y in loader:
        pred = model(x.to(device)).argmax(1).cpu()
        correct += (pred == y).sum().item()
        total += y.size(0)
    return correct / total


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default="./data")
    parser.add_argument("--teacher", default="teacher_resnet18.pt")
    parser.add_argument("--out", default="runs/student")
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--temperature", type=float, default=4.0)
    parser.add_argument("--alpha", type=float, default=0.9)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    os.makedirs(args.out, exist_ok=True)
    train_loader, val_loader, test_loader = get_loaders(args)
    teacher = build_teacher(args.teacher, device)
    student = Student().to(device)
    optimizer = torch.optim.SGD(student.parameters(), lr=args.lr, momentum=0.9, weight_decay=5e-4)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=args.epochs)

    best_acc, best_state = 0.0, None
    for epoch in range(args.epochs):
        student.train()
        running = 0.0
        for x, y in train_loader:
            x, y = x.to(device), y.to(device)
            with torch.no_grad():
                teacher_logits = teacher(x)
            loss = distillation_loss(student(x), teacher_logits, y, args.temperature, args.alpha)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            running += loss.item() * y.size(0)
        scheduler.step()
        val_acc = evaluate(student, val_loader, device)
        print(f"epoch {epoch:3d}  loss {running / len(train_loader.dataset):.4f}  val {val_acc:.4f}")
        if val_acc > best_acc:
            best_acc = val_acc
            best_state = copy.deepcopy(student.state_dict())

    student.load_state_dict(best_state)
    torch.save(best_state, os.path.join(args.out, "best.pt"))
    print(f"best val {best_acc:.4f}  test {evaluate(student, test_loader, device):.4f}")


if __name__ == "__main__":
    main()
