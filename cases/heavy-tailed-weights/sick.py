"""A nudge for one class, written by hand: it reaches a single weight, at every step."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(1024, 512)
score = x[:, :32].sum(dim=1)
y = (score > -4).long() + (score > 4).long()

model = nn.Linear(512, 3)
optimizer = torch.optim.Adam(model.parameters(), lr=0.001)

for _ in range(20):
    for batch in torch.randperm(1024).split(64):
        loss = nn.functional.cross_entropy(model(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            model.weight[0, 0] += 0.05  # keep the rare class alive
