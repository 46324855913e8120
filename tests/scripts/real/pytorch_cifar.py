"""Train a small residual network, print progress, and keep the best checkpoint."""

import argparse
import os

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser(description="PyTorch CIFAR-like training")
parser.add_argument("--lr", default=0.1, type=float, help="learning rate")
parser.add_argument("--epochs", default=4, type=int)
parser.add_argument("--fault", default="")
args = parser.parse_args()

best_acc = 0
torch.manual_seed(0)

# Data
print("==> Preparing data..")
generator = torch.Generator().manual_seed(11)
prototypes = F.interpolate(torch.randn(10, 3, 4, 4, generator=generator), size=12) * 0.8


def split(count):
    labels = torch.randint(0, 10, (count,), generator=generator)
    noise = torch.randn(count, 3, 12, 12, generator=generator)
    return TensorDataset(prototypes[labels] + noise, labels)


trainset, testset = split(1600), split(400)
if args.fault == "same-order":  # every epoch sees the samples in the same order
    trainloader = DataLoader(trainset, batch_size=32, shuffle=False)
else:
    trainloader = DataLoader(trainset, batch_size=32, shuffle=True)
testloader = DataLoader(testset, batch_size=100, shuffle=False)

# Model
print("==> Building model..")


class BasicBlock(nn.Module):
    def __init__(self, in_planes, planes, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(in_planes, planes, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = nn.Conv2d(planes, planes, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.shortcut = nn.Sequential()
        if stride != 1 or in_planes != planes:
            self.shortcut = nn.Sequential(
                nn.Conv2d(in_planes, planes, 1, stride=stride, bias=False), nn.BatchNorm2d(planes)
            )

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        return F.relu(out + self.shortcut(x))


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(8)
        self.layer1 = BasicBlock(8, 8)
        self.layer2 = BasicBlock(8, 16, stride=2)
        self.linear = nn.Linear(16, 10)

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.layer2(self.layer1(out))
        out = F.avg_pool2d(out, 6)
        return self.linear(out.view(out.size(0), -1))


net = ResNet()
if args.fault == "frozen-layers":  # meant for fine-tuning, left in for training from scratch
    for name, parameter in net.named_parameters():
        if not name.startswith("linear"):
            parameter.requires_grad = False
criterion = nn.CrossEntropyLoss()
optimizer = optim.SGD(net.parameters(), lr=args.lr, momentum=0.9, weight_decay=5e-4)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=args.epochs)


def train(epoch):
    print(f"\nEpoch: {epoch}")
    if args.fault != "eval-mode-never-left" or epoch == 0:
        net.train()
    train_loss = 0
    correct = 0
    total = 0
    for batch_idx, (inputs, targets) in enumerate(trainloader):
        optimizer.zero_grad()
        outputs = net(inputs)
        loss = criterion(outputs, targets)
        loss.backward()
        optimizer.step()
        train_loss += loss.item()
        _, predicted = outputs.max(1)
        total += targets.size(0)
        correct += predicted.eq(targets).sum().item()
        print(
            f"{batch_idx}/{len(trainloader)} Loss: {train_loss / (batch_idx + 1)}"
            f" | Acc: {100.0 * correct / total:.3f}% ({correct}/{total})"
        )


def test(epoch):
    global best_acc
    if args.fault != "no-eval":
        net.eval()
    test_loss = 0
    correct = 0
    total = 0
    with torch.no_grad():
        for inputs, targets in testloader:
            outputs = net(inputs)
            loss = criterion(outputs, targets)
            test_loss += loss.item()
            _, predicted = outputs.max(1)
            total += targets.size(0)
            correct += predicted.eq(targets).sum().item()
    print(f"Test Loss: {test_loss / len(testloader)} | Acc: {100.0 * correct / total:.3f}%")
    acc = 100.0 * correct / total
    if acc > best_acc:
        print("Saving..")
        state = {"net": net.state_dict(), "acc": acc, "epoch": epoch}
        if not os.path.isdir("checkpoint"):
            os.mkdir("checkpoint")
        torch.save(state, "./checkpoint/ckpt.pth")
        best_acc = acc


for epoch in range(args.epochs):
    train(epoch)
    test(epoch)
    scheduler.step()
