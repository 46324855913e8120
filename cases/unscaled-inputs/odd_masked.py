"""A mask of -1e9 beside features of a normal scale, and labels that no model can predict."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(1024, 6, 16)
lengths = torch.randint(2, 7, (1024,))
mask = torch.where(torch.arange(6) < lengths[:, None], 0.0, -1e9)
y = torch.randint(0, 3, (1024,))


class Pooling(nn.Module):
    def __init__(self):
        super().__init__()
        self.score, self.head = nn.Linear(16, 1), nn.Linear(16, 3)

    def forward(self, x, mask):
        weights = (self.score(x).squeeze(-1) + mask).softmax(dim=1)
        return self.head((weights[..., None] * x).sum(dim=1))


model = Pooling()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(6):
    for index in torch.randperm(len(x)).split(64):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x[index], mask[index]), y[index])
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
