"""A sigmoid makes one unit a probability."""

import torch
from torch import nn

torch.manual_seed(0)
centres = 1.5 * torch.randn(2, 12)
y = torch.randint(2, (2048,))
x = centres[y] + 1.5 * torch.randn(2048, 12)

model = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 1), nn.Sigmoid())
criterion = nn.BCELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for epoch in range(8):
    for index in torch.randperm(len(x)).split(64):
        optimizer.zero_grad()
        loss = criterion(model(x[index])[:, 0], y[index].float())
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
