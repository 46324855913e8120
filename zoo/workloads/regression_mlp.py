"""Predicts the price of houses from twelve numbers with an MLP."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
torch.manual_seed(parser.parse_args().seed)

FEATURES, EPOCHS = 12, 15
features = torch.rand(2560, FEATURES)
quality = (
    10 * torch.sin(3.1 * features[:, 0] * features[:, 1])
    + 20 * (features[:, 2] - 0.5) ** 2
    + 10 * features[:, 3]
    + 5 * features[:, 4]
)
prices = 40_000 + 15_000 * (quality + torch.randn(len(features)))
prices = prices.unsqueeze(1)

inputs = (features - features[:2048].mean(0)) / features[:2048].std(0)
targets = (prices - prices[:2048].mean()) / prices[:2048].std()
train_set = TensorDataset(inputs[:2048], targets[:2048])
valid_set = TensorDataset(inputs[2048:], targets[2048:])
train_loader = DataLoader(train_set, batch_size=64, shuffle=True)
valid_loader = DataLoader(valid_set, batch_size=256)

model = nn.Sequential(
    nn.Linear(FEATURES, 64),
    nn.ReLU(),
    nn.Linear(64, 64),
    nn.ReLU(),
    nn.Linear(64, 1),
)
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=5, gamma=0.3)

for epoch in range(EPOCHS):
    model.train()
    total = 0.0
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    scheduler.step()

    model.eval()
    with torch.no_grad():
        valid = sum(criterion(model(x), y).item() * len(y) for x, y in valid_loader)
    print(
        f"epoch {epoch}: train {total / len(train_loader):.4f} valid {valid / len(valid_set):.4f}"
    )
