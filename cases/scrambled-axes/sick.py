"""A classifier of signals that brings channels first by a reshape: channels and times are mixed."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
labels = torch.randint(4, (1024,))
times = torch.linspace(0, 6.28, 48)
phases = 6.28 * torch.rand(1024, 1, 6)
waves = torch.sin((1 + labels[:, None, None]) * times[:, None] + phases)
signals = waves + 0.5 * torch.randn(1024, 48, 6)
loader = DataLoader(TensorDataset(signals, labels), batch_size=32, shuffle=True)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.convolution = nn.Conv1d(6, 32, 9, padding=4)
        self.head = nn.Linear(32, 4)

    def forward(self, signals):
        batch, times, channels = signals.shape
        x = signals.reshape(batch, channels, times)
        return self.head(self.convolution(x).relu().mean(2))


model = Classifier()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for epoch in range(6):
    for inputs, targets in loader:
        loss = nn.functional.cross_entropy(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
