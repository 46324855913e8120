"""Hits are counted from the beginning of each pass on."""

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

import holter

torch.manual_seed(0)
x = torch.randn(2400, 8)
y = (x[:, 0] + x[:, 1] > 0).long() + (x[:, 2] > 0.5).long()
train_loader = DataLoader(TensorDataset(x[:2000], y[:2000]), batch_size=32, shuffle=True)
val_loader = DataLoader(TensorDataset(x[2000:], y[2000:]), batch_size=100)

model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

with holter.watch(model, optimizer, "run") as watch:
    for _epoch in range(5):
        model.train()
        for inputs, targets in train_loader:
            loss = functional.cross_entropy(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        correct = 0
        with torch.no_grad():
            for inputs, targets in val_loader:
                outputs = model(inputs)
                functional.cross_entropy(outputs, targets)
                correct += (outputs.argmax(1) == targets).sum().item()
        watch.log(val_accuracy=correct / 400)
