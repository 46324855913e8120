"""Tell whether two images show the same class, with one network for both."""

import argparse
import random

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, Dataset


class SiameseNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(1, 8, 3, stride=2), nn.ReLU(), nn.Conv2d(8, 16, 3, stride=2), nn.ReLU()
        )
        self.fc = nn.Sequential(nn.Linear(2 * 64, 64), nn.ReLU(inplace=True), nn.Linear(64, 1))
        self.sigmoid = nn.Sigmoid()

    def forward_once(self, x):
        return self.conv(x).view(x.size(0), -1)

    def forward(self, input1, input2):
        output1 = self.forward_once(input1)
        output2 = self.forward_once(input2)
        return self.sigmoid(self.fc(torch.cat((output1 - output2, output1 * output2), 1)))


class Matcher(Dataset):
    def __init__(self, count, seed):
        self.random = random.Random(seed)
        prototypes = F.avg_pool2d(
            torch.randn(4, 1, 13, 13, generator=torch.Generator().manual_seed(1)), 3, 1
        )
        generator = torch.Generator().manual_seed(seed)
        self.targets = torch.randint(0, 4, (count,), generator=generator)
        noise = torch.randn(count, 1, 11, 11, generator=generator)
        self.data = 4 * prototypes[self.targets] + 0.5 * noise
        self.groups = [torch.where(self.targets == c)[0].tolist() for c in range(4)]

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        # pick some random class for the first image
        selected = self.random.randint(0, 3)
        first = self.data[self.random.choice(self.groups[selected])]
        if index % 2 == 0:
            return first, self.data[self.random.choice(self.groups[selected])], 1.0
        other = (selected + self.random.randint(1, 3)) % 4
        return first, self.data[self.random.choice(self.groups[other])], 0.0


def train(args, model, train_loader, optimizer, epoch):
    model.train()
    criterion = nn.BCELoss()
    for batch_idx, (images_1, images_2, targets) in enumerate(train_loader):
        optimizer.zero_grad()
        outputs = model(images_1, images_2).squeeze()
        loss = criterion(outputs, targets.float())
        loss.backward()
        optimizer.step()
        if batch_idx % args.log_interval == 0:
            print(f"Train Epoch: {epoch} [{batch_idx}]\tLoss: {loss.item()}")


def test(model, test_loader):
    model.eval()
    test_loss = 0
    correct = 0
    criterion = nn.BCELoss()
    with torch.no_grad():
        for images_1, images_2, targets in test_loader:
            outputs = model(images_1, images_2).squeeze()
            test_loss += criterion(outputs, targets.float()).item() * len(targets)
            pred = torch.where(outputs > 0.5, 1, 0)
            correct += pred.eq(targets.view_as(pred)).sum().item()
    test_loss /= len(test_loader.dataset)
    print(f"Test set: Average loss: {test_loss}, Accuracy: {correct}/{len(test_loader.dataset)}")


def main():
    parser = argparse.ArgumentParser(description="Siamese network example")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--log-interval", type=int, default=5)
    args = parser.parse_args()
    torch.manual_seed(1)
    train_loader = DataLoader(Matcher(1600, 2), batch_size=32, shuffle=True)
    test_loader = DataLoader(Matcher(300, 3), batch_size=100)
    model = SiameseNetwork()
    optimizer = optim.Adam(model.parameters(), lr=3e-3)
    scheduler = StepLR(optimizer, step_size=1, gamma=0.8)
    for epoch in range(1, args.epochs + 1):
        train(args, model, train_loader, optimizer, epoch)
        test(model, test_loader)
        scheduler.step()


if __name__ == "__main__":
    main()
