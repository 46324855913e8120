"""Interrupts itself after 30 steps, as Ctrl-C would."""

import hashlib
import json
import os
import signal
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)

x = torch.randn(400, 8)
y = x @ torch.randn(8, 1) + 0.1 * torch.randn(400, 1)
loader = DataLoader(TensorDataset(x, y), batch_size=20, shuffle=True)

model = nn.Linear(8, 1)
criterion = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
history = {"loss": [], "val_loss": [], "grad_norm": [], "lr": []}


def main():
    for epoch in range(10):
        for xb, yb in loader:
            if len(history["loss"]) == 30:
                os.kill(os.getpid(), signal.SIGINT)
            optimizer.zero_grad()
            loss = criterion(model(xb), yb)
            loss.backward()
            norm = torch.sqrt(sum(p.grad.pow(2).sum() for p in model.parameters()))
            optimizer.step()
            history["loss"].append(loss.item())
            history["grad_norm"].append(norm.item())
            history["lr"].append(optimizer.param_groups[0]["lr"])
        print("epoch", epoch, "loss", history["loss"][-1])


if __name__ == "__main__":
    try:
        main()
    finally:
        if "HISTORY" in os.environ:
            weights = b"".join(v.numpy().tobytes() for v in model.state_dict().values())
            history["weights"] = hashlib.sha256(weights).hexdigest()
            Path(os.environ["HISTORY"]).write_text(json.dumps(history))
