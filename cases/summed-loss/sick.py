"""A loss summed over the batch, with a learning rate for a mean."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(2048, 8)
y = torch.sin(2 * x[:, :1]) + x[:, 1:2] + 0.1 * torch.randn(2048, 1)

model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
criterion = nn.MSELoss(reduction="sum")
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

for epoch in range(10):
    for index in torch.randperm(len(x)).split(64):
        optimizer.zero_grad()
        loss = criterion(model(x[index]), y[index])
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
