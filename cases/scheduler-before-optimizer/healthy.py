"""The same scheduler is stepped at the end of each epoch."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(512, 16)
y = (x[:, 0] + x[:, 1] > 0).long()

model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 2))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=5, gamma=0.5)

for epoch in range(20):
    for index in torch.randperm(len(x)).split(64):
        optimizer.zero_grad()
        loss = criterion(model(x[index]), y[index])
        loss.backward()
        optimizer.step()
    scheduler.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
