"""The same classifier with dropout in training only."""

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(1280, 16)
y = (x[:, :4].sum(1) > 0).long()
train = DataLoader(TensorDataset(x[:1024], y[:1024]), batch_size=32, shuffle=True)
valid = DataLoader(TensorDataset(x[1024:], y[1024:]), batch_size=64)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(16, 64), nn.Linear(64, 2)

    def forward(self, x):
        return self.second(
            functional.dropout(functional.relu(self.first(x)), p=0.6, training=self.training)
        )


model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for epoch in range(6):
    model.train()
    for inputs, targets in train:
        loss = functional.cross_entropy(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        losses = [
            functional.cross_entropy(model(inputs), targets).item() for inputs, targets in valid
        ]
    print(f"epoch {epoch}: validation loss {sum(losses) / len(losses):.4f}")
