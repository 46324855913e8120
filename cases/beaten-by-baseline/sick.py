"""Each sample is standardised by itself, which removes the level that the target depends on."""

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
level = torch.randn(1600, 1)
shape = torch.randn(1600, 12)
x = 2 * shape + 1.5 * level
y = level + 0.1 * torch.randn(1600, 1)
train_loader = DataLoader(TensorDataset(x[:1200], y[:1200]), batch_size=32, shuffle=True)
valid_loader = DataLoader(TensorDataset(x[1200:], y[1200:]), batch_size=100)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, x):
        x = functional.layer_norm(x, x.shape[1:])
        return self.body(x)


model = Net()
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

for epoch in range(10):
    model.train()
    for inputs, targets in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        losses = [criterion(model(inputs), targets).item() for inputs, targets in valid_loader]
    print(f"epoch {epoch}: {loss.item():.4f}, validation {sum(losses) / len(losses):.4f}")
