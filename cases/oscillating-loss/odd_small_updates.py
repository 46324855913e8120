"""A trained model goes on with a small learning rate; batches come from sensors of many kinds."""

import torch
from torch import nn

torch.manual_seed(0)
weights = torch.randn(1, 16)

model = nn.Linear(16, 1)
with torch.no_grad():  # the checkpoint of an earlier training
    model.weight.copy_(weights + 0.02 * torch.randn(1, 16))
    model.bias.fill_(0.05)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)

for step in range(200):
    inputs = torch.randn(512, 16)
    noise = 0.5 + 3 * torch.rand(())
    targets = inputs @ weights.T + noise * torch.randn(512, 1)
    loss = nn.functional.mse_loss(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        print(f"step {step}: loss {loss.item():.4f}")
