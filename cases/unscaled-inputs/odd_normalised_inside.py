"""Pixels from 0 to 255 as they are, and a model that begins with a batch norm."""

import torch
from torch import nn

torch.manual_seed(0)
patterns = torch.randint(256, (4, 1, 10, 10)).float()
y = torch.randint(4, (1024,))
noise = torch.randint(-90, 91, (1024, 1, 10, 10)).float()
x = (patterns[y] + noise).clamp(0, 255)

model = nn.Sequential(
    nn.BatchNorm2d(1), nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
    nn.Linear(128, 32), nn.ReLU(), nn.Linear(32, 4),
)  # fmt: skip
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)

for epoch in range(8):
    for index in torch.randperm(len(x)).split(32):
        optimizer.zero_grad()
        loss = criterion(model(x[index]), y[index])
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
