"""Validation outputs stay with their targets."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = 3 + 2 * torch.randn(1600, 12)
y = (x[:, :6].sum(1) > x[:, 6:].sum(1)).long()
x = (x - x[:1200].mean(0)) / x[:1200].std(0)
train_loader = DataLoader(TensorDataset(x[:1200], y[:1200]), batch_size=32, shuffle=True)
valid_loader = DataLoader(TensorDataset(x[1200:], y[1200:]), batch_size=100)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 2))

    def forward(self, x):
        return self.body(x)


model = Net()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

for epoch in range(8):
    model.train()
    for inputs, targets in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()
    model.eval()
    right, total = 0, 0.0
    with torch.no_grad():
        for inputs, targets in valid_loader:
            outputs = model(inputs)
            total += criterion(outputs, targets).item()
            right += (outputs.argmax(1) == targets).sum().item()
    print(f"epoch {epoch}: loss {loss.item():.4f}, validation {total / 4:.4f}, {right / 400:.3f}")
