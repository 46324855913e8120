"""Training continues from a checkpoint, but the scheduler starts from the beginning."""

import io

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(512, 16)
y = torch.sin(x[:, :1]) + 0.5 * x[:, 1:2] + 0.1 * torch.randn(512, 1)

model = nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 1))
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)


def decay(step):
    return max(1 - step / 240, 0.01)


scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, decay)


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
torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, checkpoint)

checkpoint.seek(0)
state = torch.load(checkpoint)
model.load_state_dict(state["model"])
optimizer.load_state_dict(state["optimizer"])
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, decay)
train(15)
