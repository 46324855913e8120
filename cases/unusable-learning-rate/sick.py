"""A linear decay written with `//`: the factor is 1 on the first step and 0 on all others."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(512, 8)
y = (x[:, 0] + x[:, 1] > 0).long()

model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)

total = 160
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: (total - step) // total)

for epoch in range(20):
    for index in torch.randperm(len(x)).split(64):
        optimizer.zero_grad()
        loss = criterion(model(x[index]), y[index])
        loss.backward()
        optimizer.step()
        schedule.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
