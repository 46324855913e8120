"""The same nudge, once and to the bias it was meant for."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(1024, 512)
score = x[:, :32].sum(dim=1)
y = (score > -4).long() + (score > 4).long()

model = nn.Linear(512, 3)
model.bias.data[0] += 0.3  # keep the rare class alive
optimizer = torch.optim.Adam(model.parameters(), lr=0.001)

for _ in range(20):
    for batch in torch.randperm(1024).split(64):
        loss = nn.functional.cross_entropy(model(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
