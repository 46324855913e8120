"""A cross-entropy written by hand takes the logarithm of 0 once a sigmoid rounds to 1."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(1024, 8)
y = (x[:, 0] + 0.5 * x[:, 1] > 0).float()

model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for epoch in range(40):
    for index in torch.randperm(len(x)).split(128):
        optimizer.zero_grad()
        p = torch.sigmoid(model(x[index])[:, 0])
        loss = -(y[index] * torch.log(p) + (1 - y[index]) * torch.log(1 - p)).mean()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
