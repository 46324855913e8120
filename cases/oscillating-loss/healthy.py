"""The same model with a tenth of the learning rate, which decays in the end."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(512, 8)
y = x @ torch.randn(8, 1) + 0.3 * torch.randn(512, 1)

model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.9)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 1500, eta_min=0.001)

for step in range(1500):
    loss = nn.functional.l1_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    if step % 250 == 0:
        print(f"step {step}: loss {loss.item():.4f}")
