"""`train(epoch)` and `test(epoch)` on globals, a progress bar, the best checkpoint."""

import argparse
import os
import sys

import torch
import torch.nn as nn
import torch.optim as optim
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser(description="CIFAR10 training")
parser.add_argument("--lr", default=0.05, type=float)
parser.add_argument("--resume", "-r", action="store_true")
args = parser.parse_args()
device = "cuda" if torch.cuda.is_available() else "cpu"
best_acc, start_epoch = 0, 0
torch.manual_seed(0)
labels = torch.randint(4, (512,))
pixels = torch.randn(512, 3, 8, 8) * 0.3
pixels[torch.arange(512), labels % 3, 2 * labels] += 2
trainset = TensorDataset(pixels[:384], labels[:384])
trainloader = DataLoader(trainset, batch_size=32, shuffle=True)
testset = TensorDataset(pixels[384:], labels[384:])
testloader = DataLoader(testset, batch_size=64, shuffle=False)
net = nn.Sequential(
    nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(),
    nn.Flatten(), nn.Linear(8 * 64, 4),
)  # fmt: skip
net = net.to(device)
criterion = nn.CrossEntropyLoss()
optimizer = optim.SGD(net.parameters(), lr=args.lr, momentum=0.9, weight_decay=5e-4)
scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=200)


def progress_bar(current, total, msg=None):
    sys.stdout.write(f"\r[{'=' * (20 * current // total):20}] {msg}")
    if current == total - 1:
        sys.stdout.write("\n")
    sys.stdout.flush()


def train(epoch):
    print(f"\nEpoch: {epoch}")
    net.train()
    train_loss = 0
    correct = 0
    total = 0
    for batch_idx, (inputs, targets) in enumerate(trainloader):
        inputs, targets = inputs.to(device), targets.to(device)
        optimizer.zero_grad()
        outputs = net(inputs)
        loss = criterion(outputs, targets)
        loss.backward()
        optimizer.step()

        train_loss += loss.item()
        _, predicted = outputs.max(1)
        total += targets.size(0)
        correct += predicted.eq(targets).sum().item()
        progress_bar(batch_idx, len(trainloader), f"Loss: {train_loss / (batch_idx + 1):.3f}")


def test(epoch):
    global best_acc
    net.eval()
    correct = 0
    total = 0
    with torch.no_grad():
        for inputs, targets in testloader:
            inputs, targets = inputs.to(device), targets.to(device)
            outputs = net(inputs)
            _, predicted = outputs.max(1)
            total += targets.size(0)
            correct += predicted.eq(targets).sum().item()
    acc = 100.0 * correct / total
    if acc > best_acc:
        print("Saving..")
        state = {"net": net.state_dict(), "acc": acc, "epoch": epoch}
        if not os.path.isdir("checkpoint"):
            os.mkdir("checkpoint")
        torch.save(state, "./checkpoint/ckpt.pth")
        best_acc = acc


for epoch in range(start_epoch, start_epoch + 3):
    train(epoch)
    test(epoch)
    scheduler.step()
