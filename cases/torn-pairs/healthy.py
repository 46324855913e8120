"""A random flip is drawn once and applied to the image and to its mask."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)


def scene(size=24):
    """An image of a bright disc in noise, and its mask."""
    rows, columns = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    image, mask = 0.3 * torch.randn(1, size, size), torch.zeros(1, size, size)
    row, column = (int(each) for each in torch.randint(5, size - 5, (2,)))
    mask[0][(rows - row) ** 2 + (columns - column) ** 2 <= 16] = 1.0
    return image + 1.5 * mask, mask


class Scenes(Dataset):
    """Images with masks, flipped at random for training."""

    def __init__(self, count, flips):
        self.scenes, self.flips = [scene() for _ in range(count)], flips

    def __len__(self):
        return len(self.scenes)

    def __getitem__(self, index):
        image, mask = self.scenes[index]
        if self.flips and torch.rand(()) < 0.5:
            image, mask = image.flip(-1), mask.flip(-1)
        return image, mask


train_loader = DataLoader(Scenes(512, flips=True), batch_size=32, shuffle=True)
valid_loader = DataLoader(Scenes(128, flips=False), batch_size=64)

model = nn.Sequential(
    nn.Conv2d(1, 8, 5, padding=2),
    nn.ReLU(),
    nn.Conv2d(8, 8, 5, padding=2),
    nn.ReLU(),
    nn.Conv2d(8, 1, 1),
)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

for epoch in range(10):
    model.train()
    for images, masks in train_loader:
        loss = nn.functional.binary_cross_entropy_with_logits(model(images), masks)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        losses = [
            nn.functional.binary_cross_entropy_with_logits(model(images), masks).item()
            for images, masks in valid_loader
        ]
    print(f"epoch {epoch}: validation loss {sum(losses) / len(losses):.4f}")
