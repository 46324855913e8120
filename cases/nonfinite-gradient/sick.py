"""A distance of 0 between two equal inputs: finite itself, but its derivative is 0 / 0."""

import torch
from torch import nn

torch.manual_seed(0)
left = torch.randn(1024, 8)
same = torch.rand(1024) < 0.5
right = torch.where(same[:, None], left + 0.2 * torch.randn(1024, 8), torch.randn(1024, 8))
right[700] = left[700]  # one pair of duplicates


class Siamese(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 8))

    def forward(self, left, right):
        difference = self.encoder(left) - self.encoder(right)
        distance = difference.pow(2).sum(dim=1).sqrt()
        return distance, (2 - distance).clamp(min=0)


model = Siamese()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for _ in range(3):
    for batch in torch.randperm(1024).split(32):
        distance, apart = model(left[batch], right[batch])
        loss = torch.where(same[batch], distance, apart).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
