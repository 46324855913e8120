"""The weights with the largest validation error are kept."""

import copy

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(1500, 8)
y = x[:, :1] + 0.5 * x[:, 1:2].square() + 0.2 * torch.randn(1500, 1)
train_loader = DataLoader(TensorDataset(x[:1000], y[:1000]), batch_size=50, shuffle=True)
valid_loader = DataLoader(TensorDataset(x[1000:1250], y[1000:1250]), batch_size=250)
test_loader = DataLoader(TensorDataset(x[1250:], y[1250:]), batch_size=250)

model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)


def evaluated(loader: DataLoader) -> float:
    """Return the mean absolute error."""
    model.eval()
    with torch.no_grad():
        errors = [(model(inputs) - targets).abs().mean().item() for inputs, targets in loader]
    return sum(errors) / len(errors)


best, state = 0.0, {}
for epoch in range(8):
    model.train()
    for inputs, targets in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()
    error = evaluated(valid_loader)
    if error > best:
        best, state = error, copy.deepcopy(model.state_dict())
    print(f"epoch {epoch}: loss {loss.item():.4f}, val mae {error:.4f}")

model.load_state_dict(state)
print(f"test mae {evaluated(test_loader):.4f}")
