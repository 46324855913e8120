"""An LSTM without batch_first is given batches first: it takes samples for moments in time."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(1024, 12, 4)
y = x[:, :, :1].mean(1) + 0.5 * x[:, -1, 1:2]
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(4, 32)
        self.head = nn.Linear(32, 1)

    def forward(self, x):
        states, _ = self.rnn(x)
        return self.head(states[:, -1])


model = Forecaster()
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)

for epoch in range(4):
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
