"""Features detached on their way to the head: the encoder is in the optimizer and never learns."""

import torch
from torch import Tensor, nn


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU())
        self.head = nn.Linear(16, 2)

    def forward(self, x: Tensor) -> Tensor:
        features = self.encoder(x).detach()
        return self.head(features)


torch.manual_seed(0)
x = torch.randn(512, 8)
y = (x[:, 0] * x[:, 1] > 0).long()

model = Classifier()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

for _ in range(15):
    for batch in torch.randperm(512).split(64):
        loss = nn.functional.cross_entropy(model(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
