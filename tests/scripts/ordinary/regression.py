import hashlib
import json
import os
from pathlib import Path

import torch
import torch.nn.functional as F

torch.manual_seed(42)

# sine in one feature, a parabola in the other, and noise
x = torch.rand(400, 2) * 4 - 2
y = torch.sin(x[:, 0]) + 0.5 * x[:, 1] ** 2 + 0.05 * torch.randn(400)
x_train, y_train, x_val, y_val = x[:300], y[:300], x[300:], y[300:]

model = torch.nn.Sequential(
    torch.nn.Linear(2, 32),
    torch.nn.Tanh(),
    torch.nn.Linear(32, 1),
    torch.nn.Flatten(0),
)
optimizer = torch.optim.RMSprop(model.parameters(), lr=5e-3)

history = {"loss": [], "val_loss": [], "grad_norm": [], "lr": []}

for t in range(200):
    y_pred = model(x_train)
    loss = ((y_pred - y_train) ** 2).mean()

    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

    history["loss"].append(loss.item())
    norm = torch.sqrt(sum(p.grad.pow(2).sum() for p in model.parameters()))
    history["grad_norm"].append(norm.item())
    history["lr"].append(optimizer.param_groups[0]["lr"])

    if t % 20 == 19:
        with torch.no_grad():
            val_loss = F.mse_loss(model(x_val), y_val).item()
        history["val_loss"].append([t + 1, val_loss])
        print(t, loss.item(), val_loss)

if "HISTORY" in os.environ:
    weights = b"".join(v.numpy().tobytes() for v in model.state_dict().values())
    history["weights"] = hashlib.sha256(weights).hexdigest()
    Path(os.environ["HISTORY"]).write_text(json.dumps(history))
