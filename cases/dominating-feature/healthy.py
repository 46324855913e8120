"""The number of days is standardised before it is concatenated with embeddings."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
shops = torch.randint(40, (2000,))
weekdays = torch.randint(7, (2000,))
days = torch.randint(4000, (2000,)).float()
level = torch.randn(40)[shops] + torch.randn(7)[weekdays]
y = (level + 0.3 * torch.randn(2000) > 0).long()
days = (days - days.mean()) / days.std()
loader = DataLoader(TensorDataset(torch.arange(2000), y), batch_size=32, shuffle=True)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.shop = nn.Embedding(40, 8)
        self.weekday = nn.Embedding(7, 4)
        self.body = nn.Sequential(nn.Linear(13, 32), nn.Tanh(), nn.Linear(32, 2))

    def forward(self, rows):
        numbers = days[rows].unsqueeze(1)
        x = torch.cat([self.shop(shops[rows]), self.weekday(weekdays[rows]), numbers], dim=1)
        return self.body(x)


model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

for epoch in range(8):
    total = 0.0
    for rows, targets in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(rows), targets)
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}: loss {total / len(loader):.4f}")
