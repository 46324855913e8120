"""A run that ends before the first drop: the loss is level, but predictions vary more and more."""

import torch
from torch import nn

torch.manual_seed(0)
inputs = torch.randn(4096, 8)
targets = (inputs[:, 0] * inputs[:, 1] + inputs[:, 2] * inputs[:, 3]).unsqueeze(1)

model = nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
nn.init.normal_(model[4].weight, std=0.01)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)

for step in range(120):
    batch = torch.randint(0, 4096, (64,))
    loss = nn.functional.mse_loss(model(inputs[batch]), targets[batch])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        print(f"step {step}: loss {loss.item():.4f}")
