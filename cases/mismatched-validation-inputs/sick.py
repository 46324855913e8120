"""Training pixels are scaled, validation pixels go to the model as they are."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
patterns = 40 * torch.randn(4, 1, 8, 8)
labels = torch.randint(4, (1200,))
pixels = (128 + patterns[labels] + 50 * torch.randn(1200, 1, 8, 8)).clamp(0, 255)


def prepare(pixels):
    return (pixels - 128) / 64


train_set = TensorDataset(prepare(pixels[:960]), labels[:960])
valid_set = TensorDataset(pixels[960:], labels[960:])
train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
valid_loader = DataLoader(valid_set, batch_size=60)

model = nn.Sequential(
    nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(72, 4)
)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

for epoch in range(8):
    model.train()
    for images, targets in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(images), targets)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        losses = [criterion(model(images), targets).item() for images, targets in valid_loader]
    print(f"epoch {epoch}: {loss.item():.4f}, validation {sum(losses) / len(losses):.4f}")
