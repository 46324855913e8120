"""Fit a damped oscillation with L-BFGS."""

import hashlib
import json
import os
from pathlib import Path

import torch
from torch import nn, optim

torch.manual_seed(0)

t = torch.linspace(0, 4, 200).unsqueeze(1)
y = torch.exp(-0.3 * t) * torch.sin(4 * t) + 0.02 * torch.randn_like(t)
t_test = torch.linspace(0.01, 3.99, 77).unsqueeze(1)
y_test = torch.exp(-0.3 * t_test) * torch.sin(4 * t_test)

seq = nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, 1))
criterion = nn.MSELoss()
optimizer = optim.LBFGS(seq.parameters(), lr=0.8, max_iter=4, line_search_fn="strong_wolfe")

# closures: loss and gradient norm of every evaluation, the evaluations of each step in one list
history = {"loss": [], "val_loss": [], "grad_norm": [], "lr": [], "closures": []}


def closure():
    optimizer.zero_grad()
    loss = criterion(seq(t), y)
    loss.backward()
    norm = torch.sqrt(sum(p.grad.pow(2).sum() for p in seq.parameters()))
    history["closures"][-1].append([loss.item(), norm.item()])
    return loss


for i in range(50):
    history["closures"].append([])
    optimizer.step(closure)
    evaluations = history["closures"][-1]
    history["loss"].append(evaluations[0][0])
    history["grad_norm"].append(evaluations[0][1])
    history["lr"].append(optimizer.param_groups[0]["lr"])

    if i % 10 == 9:
        with torch.no_grad():
            test_loss = criterion(seq(t_test), y_test).item()
        history["val_loss"].append([i + 1, test_loss])
        print("STEP:", i, "loss:", evaluations[0][0], "test loss:", test_loss)

if "HISTORY" in os.environ:
    weights = b"".join(v.numpy().tobytes() for v in seq.state_dict().values())
    history["weights"] = hashlib.sha256(weights).hexdigest()
    Path(os.environ["HISTORY"]).write_text(json.dumps(history))
