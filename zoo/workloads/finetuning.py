"""Tells scratched from sound surfaces with a new head on a frozen, pretrained CNN."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
torch.manual_seed(parser.parse_args().seed)

SIZE, WIDTH, EPOCHS = 12, 32, 8


def make_images(count):
    """Smooth grey surfaces as 8-bit pixels; half of them carry a bright scratch."""
    surface = nn.functional.interpolate(torch.randn(count, 1, 4, 4), SIZE, mode="bilinear")
    pixels = 120 + 30 * surface + 12 * torch.randn(count, 1, SIZE, SIZE)
    scratched = torch.rand(count) < 0.5
    along = torch.arange(SIZE)
    for index in scratched.nonzero().flatten().tolist():
        start, slope = SIZE * torch.rand(1), torch.randn(1)
        row = (start + slope * (along - SIZE / 2)).long()
        inside = (row >= 0) & (row < SIZE)
        pixels[index, 0, row[inside], along[inside]] += 75
    return pixels.clamp(0, 255).to(torch.uint8), scratched.float()


def normalise(pixels):
    return (pixels.float() / 255 - 0.47) / 0.14


train_pixels, train_labels = make_images(2048)
valid_pixels, valid_labels = make_images(512)
train_set = TensorDataset(normalise(train_pixels), train_labels)
valid_set = TensorDataset(normalise(valid_pixels), valid_labels)
train_loader = DataLoader(train_set, batch_size=64, shuffle=True)
valid_loader = DataLoader(valid_set, batch_size=128)


class Network(nn.Module):
    def __init__(self, outputs):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(1, WIDTH, 3, padding=1, bias=False),
            nn.BatchNorm2d(WIDTH),
            nn.ReLU(),
            nn.Conv2d(WIDTH, 2 * WIDTH, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(2 * WIDTH),
            nn.ReLU(),
            nn.Dropout(0.2),
            nn.AdaptiveMaxPool2d(2),
            nn.Flatten(),
        )
        self.head = nn.Linear(8 * WIDTH, outputs)

    def forward(self, x):
        return self.head(self.backbone(x))


def checkpoint():
    """Stands for a file of pretrained weights: filters that are not alike, statistics that fit."""
    network = Network(outputs=100)
    for parameter in network.parameters():
        if parameter.dim() == 4:
            nn.init.orthogonal_(parameter)
    with torch.no_grad():
        for pixels in train_pixels.split(256):
            network(normalise(pixels))
    return network.state_dict()


model = Network(outputs=100)
model.load_state_dict(checkpoint())
for parameter in model.backbone.parameters():
    parameter.requires_grad = False
model.head = nn.Sequential(nn.Linear(8 * WIDTH, 32), nn.ReLU(), nn.Linear(32, 1))

criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.head.parameters(), lr=3e-3)

for epoch in range(EPOCHS):
    model.train()
    model.backbone.eval()  # its batch norms keep their statistics
    total = 0.0
    for images, labels in train_loader:
        logits = model(images).squeeze(1)
        loss = criterion(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()

    model.eval()
    valid = correct = 0
    with torch.no_grad():
        for images, labels in valid_loader:
            logits = model(images).squeeze(1)
            valid += criterion(logits, labels).item() * len(labels)
            correct += ((logits > 0) == labels.bool()).sum().item()
    print(
        f"epoch {epoch}: train {total / len(train_loader):.4f}"
        f" valid {valid / len(valid_set):.4f} accuracy {correct / len(valid_set):.3f}"
    )
