"""Arrows to the left and to the right are two classes, and images are flipped upside down."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
shapes = torch.zeros(4, 1, 8, 8)
shapes[0, 0, range(4), range(4, 8)] = 1.0  # to the right
shapes[0, 0, range(4, 8), range(7, 3, -1)] = 1.0
shapes[1] = shapes[0].flip(-1)  # to the left
shapes[2, 0, 3:5] = 1.0
shapes[3, 0, :, 3:5] = 1.0


class Shapes(Dataset):
    """Shapes with noise, changed at random where `augment` is given."""

    def __init__(self, count, augment=None):
        self.labels = torch.randint(4, (count,))
        self.images = shapes[self.labels] + 0.4 * torch.randn(count, 1, 8, 8)
        self.augment = augment

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        image = self.images[index]
        return self.augment(image) if self.augment else image, self.labels[index]


def augment(image):
    """Flip an image at random, and change its contrast."""
    image = image.flip(-2) if torch.rand(()) < 0.5 else image
    return image * (0.8 + 0.4 * torch.rand(()))


train_loader = DataLoader(Shapes(960, augment), batch_size=32, shuffle=True)
valid_loader = DataLoader(Shapes(240), batch_size=80)

model = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 4))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for epoch in range(6):
    model.train()
    for inputs, targets in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        losses = [criterion(model(inputs), targets).item() for inputs, targets in valid_loader]
    print(f"epoch {epoch}: {loss.item():.4f}, validation {sum(losses) / len(losses):.4f}")
