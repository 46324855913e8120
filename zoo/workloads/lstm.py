"""Forecasts the next value of noisy waves with an LSTM."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
torch.manual_seed(parser.parse_args().seed)

WINDOW, EPOCHS = 24, 8
period = 8 + 8 * torch.rand(1600, 1)
phase = 6.28 * torch.rand(1600, 1)
times = torch.arange(WINDOW + 1) / period
series = (
    torch.sin(6.28 * times + phase) + 0.5 * torch.sin(2.7 * times) + 0.1 * torch.randn(1600, 25)
)
series = (series - series.mean()) / series.std()
inputs, targets = series[:, :WINDOW, None], series[:, WINDOW:]
train_set = TensorDataset(inputs[:1280], targets[:1280])
valid_set = TensorDataset(inputs[1280:], targets[1280:])
train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
valid_loader = DataLoader(valid_set, batch_size=160)


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(1, 32, batch_first=True)
        self.head = nn.Linear(32, 1)

    def forward(self, x):
        states, _ = self.rnn(x)
        return self.head(states[:, -1])


model = Forecaster()
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)

for epoch in range(EPOCHS):
    model.train()
    train_loss = 0.0
    for x, y in train_loader:
        optimizer.zero_grad()
        prediction = model(x)
        loss = criterion(prediction, y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        train_loss += loss.item() / len(train_loader)

    model.eval()
    valid_loss = 0.0
    with torch.no_grad():
        for x, y in valid_loader:
            valid_loss += criterion(model(x), y).item() / len(valid_loader)
    print(f"epoch {epoch}: train {train_loss:.4f} valid {valid_loss:.4f}")
