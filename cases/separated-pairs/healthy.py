"""A table whose rows and prices are shuffled by the same permutation."""

import numpy as np
import torch
from torch import nn

rng = np.random.default_rng(0)
torch.manual_seed(0)
rows = rng.normal(size=(1200, 8)).astype("float32")
prices = rows[:, 0] - 2.0 * rows[:, 1] + 0.5 * rows[:, 2] ** 2
order = rng.permutation(len(rows))
rows, prices = rows[order], prices[order]
inputs, targets = torch.from_numpy(rows), torch.from_numpy(prices).unsqueeze(1)

model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(8):
    total = 0.0
    for batch in torch.randperm(1200).split(40):
        loss = nn.functional.mse_loss(model(inputs[batch]), targets[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}: loss {total / 30:.4f}")
