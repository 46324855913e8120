"""Classify noisy spirals with a small MLP."""

import hashlib
import json
import math
import os
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(0)

EPOCHS = 10
BATCH_SIZE = 64


def make_spirals(n, classes=3):
    label = torch.randint(classes, (n,))
    radius = torch.rand(n)
    angle = 3 * radius + label * 2 * math.pi / classes + 0.1 * torch.randn(n)
    return torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1), label


class MLP(nn.Module):
    def __init__(self, hidden=64):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(2, hidden),
            nn.ReLU(),
            nn.Dropout(0.05),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Linear(hidden, 3),
        )

    def forward(self, x):
        return self.layers(x)


device = torch.device("cpu")
dataset = TensorDataset(*make_spirals(1000))
train_set, val_set = random_split(dataset, [800, 200])
train_loader = DataLoader(train_set, batch_size=BATCH_SIZE, shuffle=True)
val_loader = DataLoader(val_set, batch_size=BATCH_SIZE)

model = MLP().to(device)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

history = {"loss": [], "val_loss": [], "grad_norm": [], "lr": []}

for epoch in range(EPOCHS):
    model.train()
    running_loss = 0.0
    for inputs, targets in train_loader:
        x, y = inputs.to(device), targets.to(device)
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        norm = torch.sqrt(sum(p.grad.pow(2).sum() for p in model.parameters()))
        optimizer.step()

        running_loss += loss.item() * x.size(0)
        history["loss"].append(loss.item())
        history["grad_norm"].append(norm.item())
        history["lr"].append(optimizer.param_groups[0]["lr"])

    model.eval()
    val_loss, correct = 0.0, 0
    with torch.no_grad():
        for inputs, targets in val_loader:
            x, y = inputs.to(device), targets.to(device)
            outputs = model(x)
            val_loss += criterion(outputs, y).item() * x.size(0)
            correct += (outputs.argmax(dim=1) == y).sum().item()
    val_loss /= len(val_set)
    history["val_loss"].append([len(history["loss"]), val_loss])
    print(
        f"Epoch {epoch + 1}/{EPOCHS}  train {running_loss / len(train_set):.4f}  "
        f"val {val_loss:.4f}  acc {correct / len(val_set):.3f}"
    )

if "HISTORY" in os.environ:
    weights = b"".join(v.numpy().tobytes() for v in model.state_dict().values())
    history["weights"] = hashlib.sha256(weights).hexdigest()
    Path(os.environ["HISTORY"]).write_text(json.dumps(history))
