"""The loss is given targets first: what looks like outputs between 0 and 1 are labels."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(2048, 8)
y = (x[:, :1] + x[:, 1:2] > 0).float()

model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

for epoch in range(10):
    for index in torch.randperm(len(x)).split(64):
        optimizer.zero_grad()
        loss = criterion(y[index], model(x[index]))
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
