"""A schedule with a warm restart: the learning rate returns to its peak after every cycle."""

import torch
from torch import nn

torch.manual_seed(0)
weights = torch.randn(12, 5)
x = torch.randn(9600, 12)
y = (x @ weights + torch.randn(9600, 5)).argmax(1)

model = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 5))
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.02 if step < 400 else 1.0)

for x_batch, y_batch in zip(x.split(12), y.split(12), strict=True):
    loss = nn.functional.cross_entropy(model(x_batch), y_batch)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
print(f"loss {loss.item():.4f}")
