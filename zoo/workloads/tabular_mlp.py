"""Classifies rows of a table into five classes with a small MLP."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
torch.manual_seed(parser.parse_args().seed)

CLASSES, FEATURES = 5, 16
centres = 1.6 * torch.randn(CLASSES, FEATURES)
labels = torch.randint(CLASSES, (2560,))
rows = 120 + 40 * (centres[labels] + 1.5 * torch.randn(len(labels), FEATURES))
rows = (rows - rows.mean(0)) / rows.std(0)
train_set = TensorDataset(rows[:2048], labels[:2048])
valid_set = TensorDataset(rows[2048:], labels[2048:])
train_loader = DataLoader(train_set, batch_size=64, shuffle=True)
valid_loader = DataLoader(valid_set, batch_size=256)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(FEATURES, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.1)
        )
        self.head = nn.Linear(64, CLASSES)

    def forward(self, x):
        return self.head(self.body(x))


model = Classifier()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

for epoch in range(10):
    model.train()
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()

    model.eval()
    total = correct = 0
    with torch.no_grad():
        for x, y in valid_loader:
            logits = model(x)
            total += criterion(logits, y).item() * len(y)
            correct += (logits.argmax(1) == y).sum().item()
    print(f"epoch {epoch}: loss {total / len(valid_set):.4f} acc {correct / len(valid_set):.3f}")
