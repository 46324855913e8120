"""Names the direction and width of the stripes in small grey images with a plain CNN."""

import argparse
import math

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
torch.manual_seed(parser.parse_args().seed)

CLASSES, SIZE, EPOCHS = 8, 12, 10


def make_images(count):
    """Stripes in four directions and two widths, as 8-bit pixels, with noise."""
    labels = torch.randint(CLASSES, (count,))
    angle = (labels % 4) * math.pi / 4 + 0.15 * torch.randn(count)
    frequency = torch.where(labels < 4, 0.7, 1.2)
    phase = 2 * math.pi * torch.rand(count)
    down, across = torch.meshgrid(torch.arange(SIZE), torch.arange(SIZE), indexing="ij")
    along = angle.cos().view(-1, 1, 1) * across + angle.sin().view(-1, 1, 1) * down
    stripes = torch.sin(frequency.view(-1, 1, 1) * along + phase.view(-1, 1, 1))
    pixels = 110 + 45 * stripes + 45 * torch.randn(count, SIZE, SIZE)
    return pixels.clamp(0, 255).to(torch.uint8).unsqueeze(1), labels


train_pixels, train_labels = make_images(1536)
valid_pixels, valid_labels = make_images(512)
mean, std = train_pixels.float().mean(), train_pixels.float().std()
train_images = (train_pixels - mean) / std
valid_images = (valid_pixels - mean) / std
train_set = TensorDataset(train_images, train_labels)
valid_set = TensorDataset(valid_images, valid_labels)
train_loader = DataLoader(train_set, batch_size=64, shuffle=True, drop_last=True)
valid_loader = DataLoader(valid_set, batch_size=128)


def convolution(inputs, outputs):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()
    )


model = nn.Sequential(
    convolution(1, 12),
    nn.MaxPool2d(2),
    convolution(12, 24),
    nn.MaxPool2d(2),
    convolution(24, 24),
    nn.AdaptiveAvgPool2d(1),
    nn.Flatten(),
    nn.Linear(24, CLASSES),
)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=EPOCHS)

for epoch in range(EPOCHS):
    model.train()
    seen = total = 0
    for images, labels in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(labels)
        seen += len(labels)
    scheduler.step()

    model.eval()
    valid = correct = 0
    with torch.no_grad():
        for images, labels in valid_loader:
            logits = model(images)
            valid += criterion(logits, labels).item() * len(labels)
            correct += (logits.argmax(1) == labels).sum().item()
    print(
        f"epoch {epoch}: train {total / seen:.4f}"
        f" valid {valid / len(valid_set):.4f} accuracy {correct / len(valid_set):.3f}"
    )
