"""Triplets of ten classes: an anchor, a sample of its class, and a sample of another class."""

import torch
from torch import nn

torch.manual_seed(0)
centres = torch.randn(10, 16)
net = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 8))
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)


def embedded(classes):
    return net(centres[classes] + 0.7 * torch.randn(64, 16))


for _ in range(300):
    classes = torch.randint(0, 10, (64,))
    anchor, positive = embedded(classes), embedded(classes)
    negative = embedded((classes + torch.randint(1, 10, (64,))) % 10)
    loss = nn.functional.triplet_margin_loss(anchor, positive, negative)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
