"""A cyclic learning rate: the loss rises with each cycle, and falls with the rate."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(512, 8)
y = x @ torch.randn(8, 1) + torch.randn(512, 1)

model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.CyclicLR(
    optimizer, 1e-3, 0.8, step_size_up=160, cycle_momentum=False
)

for step in range(2560):
    loss = nn.functional.l1_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    if step % 320 == 0:
        print(f"step {step}: loss {loss.item():.4f}")
