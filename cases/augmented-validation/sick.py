"""Both parts of a random split share one data set, and with it its random shifts."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, random_split

torch.manual_seed(0)
patterns = torch.randn(4, 1, 8, 8)
labels = torch.randint(4, (1200,))
images = patterns[labels] + torch.randn(1200, 1, 8, 8)


class Images(Dataset):
    """Images of which some, where wanted, are shifted by a pixel or two at random."""

    def __init__(self, augment):
        self.augment = augment

    def __len__(self):
        return len(images)

    def __getitem__(self, index):
        image = images[index]
        if self.augment:
            image = image.roll(int(torch.randint(-2, 3, ())), dims=2)
        return image, labels[index]


train_set, valid_set = random_split(Images(augment=True), [960, 240])
train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
valid_loader = DataLoader(valid_set, batch_size=60)

model = nn.Sequential(
    nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(72, 4)
)
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
