"""A probe of the untrained encoder freezes it, and nothing thaws it before the training."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(512, 8)
y = (x[:, 0] * x[:, 1] > 0).long()

encoder = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU())
head = nn.Linear(16, 2)
model = nn.Sequential(encoder, head)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)


def spread_of_features() -> float:
    for parameter in encoder.parameters():
        parameter.requires_grad = False
    return encoder(x).std(dim=0).mean().item()


print(f"spread of the features: {spread_of_features():.3f}")
for _ in range(15):
    for batch in torch.randperm(512).split(64):
        loss = nn.functional.cross_entropy(model(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
