"""A loop that names `zero_grad` without calling it: gradients of all steps add up."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(256, 8)
y = torch.sin(x[:, :1]) + 0.5 * x[:, 1:2] + 0.05 * torch.randn(256, 1)

model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))
criterion = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

for epoch in range(25):
    for index in torch.randperm(len(x)).split(64):
        loss = criterion(model(x[index]), y[index])
        optimizer.zero_grad
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
