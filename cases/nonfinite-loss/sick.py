"""A model returns the logarithm of 0 once its sigmoid rounds to 1."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(1024, 8)
y = (x[:, 0] + 0.5 * x[:, 1] > 0).float()


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, x):
        p = torch.sigmoid(self.body(x)[:, 0])
        return torch.log(p), torch.log(1 - p)


model = Classifier()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for epoch in range(40):
    for index in torch.randperm(len(x)).split(128):
        optimizer.zero_grad()
        yes, no = model(x[index])
        loss = -(y[index] * yes + (1 - y[index]) * no).mean()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
