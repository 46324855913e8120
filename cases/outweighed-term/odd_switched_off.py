"""A second task whose weight is 0 until its ramp begins, behind the end of this run."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(4096, 8)
numbers = torch.stack((torch.sin(2 * x[:, 0]), x[:, 1] * x[:, 2]), 1)
labels = (x[:, 3:6] + 0.3 * torch.randn(4096, 3)).argmax(1)


class TwoTasks(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 8), nn.Tanh())
        self.numbers, self.classes = nn.Linear(8, 2), nn.Linear(8, 3)

    def forward(self, x):
        features = self.body(x)
        return self.numbers(features), self.classes(features)


model = TwoTasks()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

for epoch in range(6):
    weight = max(0.0, epoch - 20) / 10
    for index in torch.randperm(len(x)).split(128):
        optimizer.zero_grad()
        predicted, logits = model(x[index])
        loss = nn.functional.mse_loss(predicted, numbers[index])
        loss = loss + weight * nn.functional.cross_entropy(logits, labels[index])
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
