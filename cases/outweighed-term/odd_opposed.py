"""An opponent that looks for the recording site in the features, and finds none: they hold none."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(4096, 8)
numbers = torch.stack((torch.sin(2 * x[:, 0]), x[:, 1] * x[:, 2]), 1)
sites = torch.randint(0, 4, (4096,))


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(_, features):
        return features.view_as(features)

    @staticmethod
    def backward(_, gradient):
        return -1e-3 * gradient


body = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 8), nn.Tanh())
head, opponent = nn.Linear(8, 2), nn.Linear(8, 4)
optimizer = torch.optim.Adam([*body.parameters(), *head.parameters()], lr=3e-3)
of_opponent = torch.optim.SGD(opponent.parameters(), lr=0.05)

for epoch in range(6):
    for index in torch.randperm(len(x)).split(128):
        optimizer.zero_grad()
        of_opponent.zero_grad()
        features = body(x[index])
        loss = nn.functional.mse_loss(head(features), numbers[index])
        site = nn.functional.cross_entropy(opponent(Reverse.apply(features)), sites[index])
        (loss + site).backward()
        optimizer.step()
        of_opponent.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}, site {site.item():.4f} (ln 4 = 1.386)")
