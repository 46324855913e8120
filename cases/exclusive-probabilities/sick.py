"""Tags that may occur together are predicted with a softmax."""

import torch
from torch import nn
from torch.nn import functional

torch.manual_seed(0)
inputs = torch.randn(3_000, 20)
tags = (inputs @ torch.randn(20, 6) > 2.0).float()
model = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 6))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

for epoch in range(5):
    for rows in torch.randperm(len(inputs)).split(100):
        probabilities = model(inputs[rows]).softmax(-1)
        loss = functional.binary_cross_entropy(probabilities, tags[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
