"""A softmax over axis 0: each class is shared out among the samples of the batch."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(2048, 8)
y = (x @ torch.randn(8, 5) + 0.3 * torch.randn(2048, 5)).argmax(1)

model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 5))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

for epoch in range(6):
    for index in torch.randperm(len(x)).split(64):
        optimizer.zero_grad()
        probabilities = torch.softmax(model(x[index]), dim=0)
        chosen = probabilities.gather(1, y[index].unsqueeze(1))
        loss = -torch.log(chosen + 1e-8).mean()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
