"""Each token gets the vector of its position."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
tokens = torch.randint(12, (2000, 8))
labels = (tokens[:, 0] > tokens[:, -1]).long()
loader = DataLoader(TensorDataset(tokens, labels), batch_size=32, shuffle=True)


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(12, 16)
        self.positions = nn.Parameter(0.5 * torch.randn(1, 8, 16))
        self.body = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 16))
        self.head = nn.Linear(16, 2)

    def forward(self, tokens):
        x = self.embedding(tokens) + self.positions[:, : tokens.shape[1]]
        return self.head(self.body(x).mean(1))


model = Reader()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for epoch in range(8):
    total = 0.0
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}: loss {total / len(loader):.4f}")
