"""Weights kept in bfloat16: at this learning rate most of each update is rounded away."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(1024, 8)
y = (x[:, 0] > 0).long() + (x[:, 2] > 0).long()

model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 3))
model = model.bfloat16()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-4)

for _ in range(25):
    for batch in torch.randperm(1024).split(64):
        logits = model(x[batch].bfloat16()).float()
        loss = nn.functional.cross_entropy(logits, y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
