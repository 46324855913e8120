"""Pieces of one long signal in order of time, and a recurrent state that is carried along."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
time = torch.arange(16 * 20 * 40) / 30
signal = torch.sin(time) + torch.sin(time / 40) + 0.05 * torch.randn(len(time))
pieces = signal.unfold(0, 21, 20)
pieces = pieces[: len(pieces) // 16 * 16]
loader = DataLoader(TensorDataset(pieces[:, :-1, None], pieces[:, 1:, None]), batch_size=16)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.head = nn.GRU(1, 16, batch_first=True), nn.Linear(16, 1)

    def forward(self, x, state):
        out, state = self.cell(x.reshape(1, -1, 1), state)
        return self.head(out), state


model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for epoch in range(5):
    state = torch.zeros(1, 1, 16)
    for x, y in loader:
        predicted, state = model(x, state.detach())
        loss = nn.functional.mse_loss(predicted, y.reshape(1, -1, 1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
