"""float16 autocast with a gradient scaler."""

import hashlib
import json
import os
from pathlib import Path

import torch
from torch import nn

torch.manual_seed(5)

x_all = torch.randn(640, 16)
w_true = torch.randn(16, 4) / 4
y_all = torch.tanh(x_all @ w_true) + 0.05 * torch.randn(640, 4)
x_val = torch.randn(100, 16)
y_val = torch.tanh(x_val @ w_true)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(16, 64)
        self.fc2 = nn.Linear(64, 4)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))


model = Net()
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**21, growth_interval=30)

history = {"loss": [], "val_loss": [], "grad_norm": [], "lr": [], "skipped": [], "scale": []}

for epoch in range(8):
    for x, y in zip(x_all.split(64), y_all.split(64), strict=True):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            loss = criterion(model(x), y)

        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        norm = torch.sqrt(sum(p.grad.pow(2).sum() for p in model.parameters()))
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        scale = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()

        if scaler.get_scale() < scale:
            history["skipped"].append(len(history["loss"]))
        history["loss"].append(loss.item())
        history["grad_norm"].append(norm.item())
        history["lr"].append(optimizer.param_groups[0]["lr"])
        history["scale"].append(scale)

    model.eval()
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.float16):
        val_loss = criterion(model(x_val), y_val).item()
    model.train()
    history["val_loss"].append([len(history["loss"]), val_loss])
    print(f"epoch {epoch} val {val_loss:.4f} scale {scaler.get_scale():.0f}")

if "HISTORY" in os.environ:
    weights = b"".join(v.numpy().tobytes() for v in model.state_dict().values())
    history["weights"] = hashlib.sha256(weights).hexdigest()
    Path(os.environ["HISTORY"]).write_text(json.dumps(history))
