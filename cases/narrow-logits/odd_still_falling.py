"""Softmax regression on pixels with a small learning rate, ended long before it has converged."""

import torch
from torch import nn

torch.manual_seed(0)
prototypes = torch.rand(10, 1, 7, 7)

model = nn.Linear(28 * 28, 10)
optimizer = torch.optim.SGD(model.parameters(), lr=5e-4)

for step in range(200):
    labels = torch.randint(0, 10, (100,))
    images = nn.functional.interpolate(prototypes[labels], scale_factor=4)
    images = 0.7 * images + 0.3 * torch.rand(100, 1, 28, 28)
    loss = nn.functional.cross_entropy(model(images.flatten(1)), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(f"step {step} loss {loss.item():.3f}")
