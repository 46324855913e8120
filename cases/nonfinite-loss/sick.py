"""A hand-written cross entropy: once a probability rounds to 0, its logarithm is -inf."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
x = torch.randn(256, 4) * 20
y = (x[:, 0] > 0).long() + (x[:, 1] > 10).long()

for _ in range(60):
    probability = model(x).softmax(dim=1)
    loss = -probability[torch.arange(len(y)), y].log().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
