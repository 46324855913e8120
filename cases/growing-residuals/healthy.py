"""Each block adds a little to the stream."""

import torch
from torch import nn

torch.manual_seed(0)
centres = 1.5 * torch.randn(4, 16)
y = torch.randint(4, (2048,))
x = centres[y] + 2 * torch.randn(2048, 16)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(16)
        self.inner, self.outer = nn.Linear(16, 32), nn.Linear(32, 16)

    def forward(self, x):
        return x + self.outer(torch.relu(self.inner(self.norm(x))))


model = nn.Sequential(*(Block() for _ in range(6)), nn.LayerNorm(16), nn.Linear(16, 4))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for epoch in range(12):
    for index in torch.randperm(len(x)).split(64):
        optimizer.zero_grad()
        loss = criterion(model(x[index]), y[index])
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
