"""A regression whose batches are drawn by a generator that is seeded once."""

import torch
from torch import nn

torch.manual_seed(0)
rows = torch.randn(4500, 6)
values = rows[:, :1] * rows[:, 1:2] + 0.3 * torch.randn(4500, 1)
train, held = slice(4000), slice(4000, 4500)
generator = torch.Generator().manual_seed(7)


def next_batch() -> tuple[torch.Tensor, torch.Tensor]:
    index = torch.randint(4000, (32,), generator=generator)
    return rows[train][index], values[train][index]


model = nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(6):
    total = 0.0
    for _ in range(125):
        inputs, targets = next_batch()
        loss = nn.functional.mse_loss(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    with torch.no_grad():
        validation = nn.functional.mse_loss(model(rows[held]), values[held]).item()
    print(f"epoch {epoch}: loss {total / 125:.4f}, validation {validation:.4f}")
