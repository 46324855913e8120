"""Two tasks: the weight of the second grows on purpose, and the sum of the losses with it."""

import torch
from torch import nn

torch.manual_seed(0)
centres = torch.randn(4, 16) * 2
mixing = torch.randn(16, 1) / 4

body = nn.Sequential(nn.Linear(16, 64), nn.ReLU())
classes = nn.Linear(64, 4)
readings = nn.Linear(64, 1)
modules = nn.ModuleList([body, classes, readings])
optimizer = torch.optim.SGD(modules.parameters(), lr=0.02, momentum=0.9)

for step in range(600):
    labels = torch.randint(0, 4, (128,))
    inputs = centres[labels] + torch.randn(128, 16)
    noisy = inputs @ mixing + torch.randn(128, 1)
    weight = 0.02 + 2 * step / 600
    found = body(inputs)
    task = nn.functional.cross_entropy(classes(found), labels)
    loss = task + weight * (readings(found) - noisy).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        right = (classes(found).argmax(1) == labels).float().mean()
        print(f"step {step} loss {loss.item():.3f} accuracy {right.item():.3f}")
