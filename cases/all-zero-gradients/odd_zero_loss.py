"""A margin loss on separable data: once every margin is met, the loss and its gradients are 0."""

import torch
from torch import nn

torch.manual_seed(0)
y = torch.randint(3, (512,))
x = torch.randn(512, 8)
x[:, :3] += 8.0 * nn.functional.one_hot(y, 3)

model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=0.003)

for _ in range(30):
    for batch in torch.randperm(512).split(64):
        loss = nn.functional.multi_margin_loss(model(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
