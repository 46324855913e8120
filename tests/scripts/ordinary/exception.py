"""Stops in step 30 at a row whose label nobody expected."""

import hashlib
import json
import os
from pathlib import Path

import torch
from torch import nn

torch.manual_seed(0)

names = ["cat", "dog", "bird"]
x = torch.randn(60 * 16, 10)
scores = x @ torch.randn(10, 3)
labels = [names[i] for i in scores.argmax(dim=1).tolist()]
labels[30 * 16 + 5] = "horse"

model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)
criterion = nn.CrossEntropyLoss()
history = {"loss": [], "val_loss": [], "grad_norm": [], "lr": []}


def encode(batch):
    def to_index(name):
        if name not in names:
            raise ValueError(f"unknown label: {name}")
        return names.index(name)

    return torch.tensor([to_index(name) for name in batch])


def train_step(step):
    rows = slice(step * 16, (step + 1) * 16)
    outputs = model(x[rows])
    loss = criterion(outputs, encode(labels[rows]))
    optimizer.zero_grad()
    loss.backward()
    norm = torch.sqrt(sum(p.grad.pow(2).sum() for p in model.parameters()))
    optimizer.step()
    history["loss"].append(loss.item())
    history["grad_norm"].append(norm.item())
    history["lr"].append(optimizer.param_groups[0]["lr"])


def train(steps):
    for step in range(steps):
        train_step(step)
        if step % 10 == 0:
            print(step, history["loss"][-1])


def save_history():
    weights = b"".join(v.numpy().tobytes() for v in model.state_dict().values())
    history["weights"] = hashlib.sha256(weights).hexdigest()
    Path(os.environ["HISTORY"]).write_text(json.dumps(history))


try:
    train(60)
finally:
    if "HISTORY" in os.environ:
        save_history()
