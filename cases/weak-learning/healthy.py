"""A recurrent network that answers from the last step of its sequence."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
sequences = torch.randn(1536, 6, 3)
targets = sequences[:, 3:, 0].sum(1) + 0.5 * sequences[:, 5, 1] + 0.1 * torch.randn(1536)
loader = DataLoader(TensorDataset(sequences, targets), batch_size=32, shuffle=True)


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.recurrent = nn.GRU(3, 24, batch_first=True)
        self.head = nn.Linear(24, 1)

    def forward(self, x):
        steps, _ = self.recurrent(x)
        return self.head(steps[:, -1]).squeeze(-1)


model = Forecaster()
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)

for epoch in range(4):
    for inputs, values in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), values)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
