"""Classes that depend on products of features, and a model without a hidden layer."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(4000, 40)
score = x[:, 0] * x[:, 1] + x[:, 2] * x[:, 3] + 0.25 * x[:, 4]
y = (score > 0).long()

model = nn.Sequential(nn.Linear(40, 2))
nn.init.normal_(model[0].weight, std=0.3)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for epoch in range(20):
    for batch in torch.randperm(4000).split(64):
        loss = nn.functional.cross_entropy(model(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
