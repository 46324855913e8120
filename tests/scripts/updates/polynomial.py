"""Fit a polynomial to a sine with tensors and gradient descent by hand."""

import json
import math
import os
from pathlib import Path

import torch

torch.manual_seed(0)
x = torch.linspace(-math.pi, math.pi, 500)
y = torch.sin(x)
a = torch.randn((), requires_grad=True)
b = torch.randn((), requires_grad=True)
c = torch.randn((), requires_grad=True)
history = {"loss": [], "val_loss": []}

for t in range(80):
    loss = (a + b * x + c * x**3 - y).pow(2).mean()
    loss.backward()
    history["loss"].append(loss.item())
    with torch.no_grad():
        a -= 1e-3 * a.grad
        b -= 1e-3 * b.grad
        c -= 1e-3 * c.grad
        a.grad = b.grad = c.grad = None
    if t % 20 == 19:
        print(t, loss.item(), a.item(), b.item(), c.item())

if "HISTORY" in os.environ:
    Path(os.environ["HISTORY"]).write_text(json.dumps(history))
