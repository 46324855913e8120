"""Finds which of six coloured shapes is in an image with a small residual network."""

import argparse

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
torch.manual_seed(parser.parse_args().seed)

CLASSES, SIZE, EPOCHS, BATCH = 6, 12, 7, 32


def make_images(count):
    """One of six shapes of five by five pixels, anywhere, in any colour, with noise."""
    shapes = torch.zeros(CLASSES, 5, 5)
    shapes[0, :, 2] = shapes[0, 2, :] = 1  # plus
    shapes[1] = torch.eye(5).maximum(torch.eye(5).flip(0))  # cross
    shapes[2, 0] = shapes[2, 4] = shapes[2, :, 0] = shapes[2, :, 4] = 1  # frame
    shapes[3, 0] = shapes[3, :, 2] = 1  # T
    shapes[4, 4] = shapes[4, :, 0] = 1  # L
    shapes[5, ::2] = 1  # three bars
    labels = torch.randint(CLASSES, (count,))
    images = 0.5 * torch.randn(count, 3, SIZE, SIZE)
    colours = 0.8 + 0.8 * torch.rand(count, 3, 1, 1)
    corners = torch.randint(SIZE - 4, (count, 2)).tolist()
    for image, label, colour, (top, left) in zip(images, labels, colours, corners, strict=True):
        image[:, top : top + 5, left : left + 5] += colour * shapes[label]
    return images, labels


train_set = TensorDataset(*make_images(1280))
valid_set = TensorDataset(*make_images(512))
train_loader = DataLoader(train_set, batch_size=BATCH, shuffle=True)
valid_loader = DataLoader(valid_set, batch_size=128)


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.shortcut = nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False)

    def forward(self, x):
        out = F.relu(self.norm1(self.conv1(x)))
        out = self.norm2(self.conv2(out))
        return F.relu(out + self.shortcut(x))


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 12, 3, padding=1, bias=False), nn.BatchNorm2d(12), nn.ReLU()
        )
        self.blocks = nn.ModuleList(
            [Block(12, 12, stride=2), Block(12, 24, stride=1), Block(24, 24, stride=1)]
        )
        self.head = nn.Linear(24, CLASSES)

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean((2, 3)))


model = ResNet()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
scheduler = torch.optim.lr_scheduler.OneCycleLR(
    optimizer, max_lr=1e-2, total_steps=EPOCHS * len(train_loader)
)

for epoch in range(EPOCHS):
    model.train()
    total = 0
    for images, labels in train_loader:
        loss = criterion(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        total += loss.item()

    model.eval()
    valid = correct = 0
    with torch.no_grad():
        for images, labels in valid_loader:
            logits = model(images)
            valid += criterion(logits, labels).item() * len(labels)
            correct += (logits.argmax(1) == labels).sum().item()
    print(
        f"epoch {epoch}: train {total / len(train_loader):.4f}"
        f" valid {valid / len(valid_set):.4f} accuracy {correct / len(valid_set):.3f}"
    )
