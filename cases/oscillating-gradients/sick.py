"""Two alternating tasks, one with a thousand times the weight and random labels."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(1024, 8)
y = (x[:, 0] * x[:, 1] > 0).long() + (x[:, 2] > 0).long()
noise = torch.randint(3, (1024,))

model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=0.002)

for step in range(320):
    batch = torch.randint(1024, (64,))
    labels, weight = (y, 1.0) if step % 2 else (noise, 1000.0)
    loss = weight * nn.functional.cross_entropy(model(x[batch]), labels[batch])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
