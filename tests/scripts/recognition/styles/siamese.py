"""Pairs of images with a loss on the distance, the data set makes pairs at random."""

import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class Matcher(Dataset):
    def __init__(self, count, seed):
        generator = torch.Generator().manual_seed(seed)
        self.labels = torch.randint(4, (count,), generator=generator)
        self.data = F.one_hot(self.labels, 4).repeat(1, 4).float().view(-1, 1, 4, 4)
        self.data = self.data + 0.2 * torch.randn(self.data.shape, generator=generator)
        self.groups = {i: torch.where(self.labels == i)[0].tolist() for i in range(4)}

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        own = int(self.labels[index])
        same = index % 2 == 0
        other = own if same else random.choice([i for i in range(4) if i != own])
        partner = random.choice(self.groups[other])
        return self.data[index], self.data[partner], torch.tensor(float(same))


class SiameseNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Flatten(), nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8))
        self.fc = nn.Linear(16, 1)

    def forward(self, input1, input2):
        return torch.sigmoid(self.fc(torch.cat((self.body(input1), self.body(input2)), 1)))


def train(model, train_loader, optimizer, epoch):
    model.train()
    criterion = nn.BCELoss()
    for batch_idx, (images_1, images_2, targets) in enumerate(train_loader):
        optimizer.zero_grad()
        outputs = model(images_1, images_2).squeeze()
        loss = criterion(outputs, targets)
        loss.backward()
        optimizer.step()


random.seed(0)
torch.manual_seed(0)
train_loader = DataLoader(Matcher(512, 0), batch_size=32, shuffle=True)
test_loader = DataLoader(Matcher(128, 1), batch_size=64)
model = SiameseNetwork()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(4):
    train(model, train_loader, optimizer, epoch)
torch.save(model.state_dict(), "siamese_network.pt")
