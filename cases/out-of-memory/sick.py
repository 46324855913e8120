"""All pairs of a bank of features that grows with the data are compared in one tensor."""

import torch
from torch import nn

torch.manual_seed(0)
truth = torch.randn(8, 1)
model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)


def spread(features):
    return (features[:, None] - features[None]).pow(2).sum(-1).mean()


for step in range(100):
    inputs = torch.randn(32, 8)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(inputs), inputs @ truth + 0.1 * torch.randn(32, 1))
    loss.backward()
    optimizer.step()
    if step == 80:
        everything = torch.randn(2_000_000, 8)
        print(f"spread {spread(everything):.3f}")
