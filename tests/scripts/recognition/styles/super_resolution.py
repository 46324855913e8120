"""Super resolution: a short loop with the batch unpacked in place, several workers."""

import torch
import torch.nn as nn
import torch.optim as optim
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(123)


class Images(Dataset):
    def __init__(self, count, start):
        self.count, self.start = count, start

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(self.start + index)
        target = torch.rand(1, 8, 8, generator=generator)
        return nn.functional.avg_pool2d(target, 2), target


training_data_loader = DataLoader(Images(320, 0), num_workers=1, batch_size=16, shuffle=True)
testing_data_loader = DataLoader(Images(64, 10**6), num_workers=1, batch_size=16)
model = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1), nn.Tanh(), nn.Conv2d(16, 4, 1), nn.PixelShuffle(2)
)
criterion = nn.MSELoss()
optimizer = optim.Adam(model.parameters(), lr=1e-3)


def train(epoch):
    epoch_loss = 0
    for iteration, batch in enumerate(training_data_loader, 1):
        input, target = batch[0].to("cpu"), batch[1].to("cpu")
        optimizer.zero_grad()
        loss = criterion(model(input), target)
        epoch_loss += loss.item()
        loss.backward()
        optimizer.step()
    print(f"===> Epoch {epoch} Complete: Avg. Loss: {epoch_loss / len(training_data_loader):.4f}")


def checkpoint(epoch):
    torch.save(model, f"model_epoch_{epoch}.pth")


if __name__ == "__main__":
    for epoch in range(1, 4):
        train(epoch)
        checkpoint(epoch)
