"""Warm restarts: training is resumed, with all state, at the start of the second cycle."""

import io

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(512, 16)
y = torch.sin(x[:, :1]) + 0.5 * x[:, 1:2] + 0.1 * torch.randn(512, 1)

model = nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 1))
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
WarmRestarts = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts
scheduler = WarmRestarts(optimizer, T_0=120, eta_min=1e-4)


def train(epochs):
    for epoch in range(epochs):
        for index in torch.randperm(len(x)).split(64):
            optimizer.zero_grad()
            loss = criterion(model(x[index]), y[index])
            loss.backward()
            optimizer.step()
            scheduler.step()
        print(f"epoch {epoch}: loss {loss.item():.4f} rate {scheduler.get_last_lr()[0]:.5f}")


train(15)
checkpoint = io.BytesIO()
torch.save(
    {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "scheduler": scheduler.state_dict(),
    },
    checkpoint,
)

checkpoint.seek(0)
state = torch.load(checkpoint)
scheduler = WarmRestarts(optimizer, T_0=120, eta_min=1e-4)
model.load_state_dict(state["model"])
optimizer.load_state_dict(state["optimizer"])
scheduler.load_state_dict(state["scheduler"])
train(15)
