"""A batch is a stretch of one long series: its rows are moments in time, in order."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(2048, 4)
y = x[:, :1].clone()
for moment in range(1, len(y)):
    y[moment] += 0.7 * y[moment - 1]
y = y / y.std()
loader = DataLoader(TensorDataset(x, y), batch_size=64)


class Filter(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(4, 32)
        self.head = nn.Linear(32, 1)

    def forward(self, moments):
        states, _ = self.rnn(moments)
        return self.head(states)


model = Filter()
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)

for epoch in range(8):
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
