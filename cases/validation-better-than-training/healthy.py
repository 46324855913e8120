"""Erasing 30 % of the features: validation is a little better than training, as it should be."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
centres = 2.0 * torch.randn(5, 12)
labels = torch.randint(5, (2000,))
rows = centres[labels] + torch.randn(2000, 12)
train_loader = DataLoader(TensorDataset(rows[:1600], labels[:1600]), batch_size=32, shuffle=True)
valid_loader = DataLoader(TensorDataset(rows[1600:], labels[1600:]), batch_size=100)


class Erasing(nn.Module):
    def __init__(self, share):
        super().__init__()
        self.share = share

    def forward(self, features):
        if not self.training:
            return features
        kept = torch.rand_like(features) >= self.share
        return features * kept / (1 - self.share)


model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), Erasing(0.3), nn.Linear(32, 5))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for epoch in range(12):
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
