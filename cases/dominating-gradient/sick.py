"""Features of up to 60 beside learned ones: they take all of the clipped gradient."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(1024, 8)
y = (x[:, 0] * x[:, 1] > 0).long() + (x[:, 2] > 0).long()


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 64)
        self.second = nn.Linear(64, 64)
        self.third = nn.Linear(64, 64)
        self.head = nn.Linear(64, 3)
        self.wide = nn.Linear(16, 3)

    def forward(self, x):
        hidden = self.first(x).relu()
        hidden = self.second(hidden).relu()
        counts = 60 * torch.rand(len(x), 16)  # page views, nothing to do with the label
        return self.head(self.third(hidden).relu()) + self.wide(counts)


model = Model()
nn.init.zeros_(model.wide.weight)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)

for _ in range(20):
    for batch in torch.randperm(1024).split(64):
        loss = nn.functional.cross_entropy(model(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
