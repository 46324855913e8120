"""The same column, standardised."""

import torch
from torch import nn

torch.manual_seed(0)
words = (torch.rand(1024, 999) < 0.02).float()
y = (words[:, :300].sum(1) > 6).long()
length = torch.randn(1024, 1)
x = torch.cat([words, length], dim=1)

model = nn.Linear(1000, 2)
optimizer = torch.optim.Adam(model.parameters(), lr=0.003)

for _ in range(20):
    for batch in torch.randperm(1024).split(64):
        loss = nn.functional.cross_entropy(model(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
