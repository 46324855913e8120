"""Classes that depend on products of features, and a model without a hidden layer."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(4000, 10)
y = 2 * (x[:, 0] * x[:, 1] > 0).long() + (x[:, 2] * x[:, 3] + 0.15 * x[:, 4] > 0).long()

model = nn.Sequential(nn.Linear(10, 4))
nn.init.normal_(model[0].weight, std=0.4)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)

for epoch in range(200):
    for batch in torch.randperm(4000).split(1000):
        loss = nn.functional.cross_entropy(model(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 20 == 0:
        print(f"epoch {epoch}: loss {loss.item():.4f}")
