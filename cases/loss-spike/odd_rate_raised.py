"""A warm restart: the learning rate returns to its peak after the first cycle."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(6000, 12)
y = x @ torch.randn(12, 1) + 0.3 * torch.randn(6000, 1)

model = nn.Linear(12, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 if 100 <= step < 300 else 12)

for x_batch, y_batch in zip(x.split(12), y.split(12), strict=True):
    loss = nn.functional.mse_loss(model(x_batch), y_batch)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
print(f"loss {loss.item():.4f}")
