"""A warm restart: the learning rate returns to its peak after the first cycle."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(32000, 12)
y = (x @ torch.randn(12, 5)).argmax(1)

model = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 5))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 if 100 <= step < 300 else 40)

for x_batch, y_batch in zip(x.split(64), y.split(64), strict=True):
    loss = nn.functional.cross_entropy(model(x_batch), y_batch)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
print(f"loss {loss.item():.4f}")
