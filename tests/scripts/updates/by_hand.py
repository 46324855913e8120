"""Train a classifier with a loop that updates the weights itself, at the rate of an argument."""

import json
import os
import sys
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

rate = float(sys.argv[1])
torch.manual_seed(0)
x = torch.randn(1200, 10)
y = (x[:, 0] + x[:, 1] * x[:, 2] > 0).long()
train = DataLoader(TensorDataset(x[:960], y[:960]), batch_size=32, shuffle=True)
valid = DataLoader(TensorDataset(x[960:], y[960:]), batch_size=80)
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 2))
history = {"loss": [], "val_loss": []}

for epoch in range(6):
    model.train()
    for inputs, labels in train:
        loss = F.cross_entropy(model(inputs), labels)
        model.zero_grad()
        loss.backward()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= rate * parameter.grad  # noqa: PLW2901
        history["loss"].append(loss.item())
    model.eval()
    with torch.no_grad():
        losses = [F.cross_entropy(model(inputs), labels).item() for inputs, labels in valid]
    history["val_loss"].append(sum(losses) / len(losses))
    print(epoch, history["loss"][-1], history["val_loss"][-1])

if "HISTORY" in os.environ:
    Path(os.environ["HISTORY"]).write_text(json.dumps(history))
