"""A model of categories whose tables all read the first column."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
rows = torch.randint(6, (1024, 4))
effect = torch.randn(4, 6)
target = sum(effect[column, rows[:, column]] for column in range(4))
loader = DataLoader(TensorDataset(rows, target), batch_size=32, shuffle=True)


class Tables(nn.Module):
    def __init__(self):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(6, 8) for _ in range(4))
        self.head = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, rows):
        parts = [table(rows[:, 0]) for _, table in enumerate(self.tables)]
        return self.head(torch.cat(parts, 1)).squeeze(1)


model = Tables()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for epoch in range(10):
    for inputs, targets in loader:
        loss = nn.functional.mse_loss(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
