"""One row has a missing value; the loop discards the step of every batch that holds it."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(1024, 8)
y = (x[:, 0] + 0.5 * x[:, 1] > 0).long()
x[100, 3] = float("nan")

model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for epoch in range(8):
    for index in torch.arange(1024).split(32):
        loss = nn.functional.cross_entropy(model(x[index]), y[index])
        optimizer.zero_grad()
        loss.backward()
        if not torch.isfinite(loss):
            continue
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
