"""A resumed training loads its weights only: AdamW and the schedule start again."""

import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(1024, 16)
y = torch.sin(2 * x[:, :1]) + 0.5 * x[:, 1:2] + 0.3 * torch.randn(1024, 1)
path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp()) / "last.pt"
resumes = len(sys.argv) == 1
if resumes:  # the run of the day before
    subprocess.run([sys.executable, __file__, str(path)], check=True)

model = nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.8)
epochs = range(12)
if resumes:
    checkpoint = torch.load(path)
    model.load_state_dict(checkpoint["model"])
    epochs = range(checkpoint["epoch"] + 1, 24)

for epoch in epochs:
    for index in torch.randperm(len(x)).split(64):
        loss = nn.functional.mse_loss(model(x[index]), y[index])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    scheduler.step()
    print(f"epoch {epoch}: loss {loss.item():.4f} rate {scheduler.get_last_lr()[0]:.5f}")
if not resumes:
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    torch.save(state | {"scheduler": scheduler.state_dict(), "epoch": epoch}, path)
