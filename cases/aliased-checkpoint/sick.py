"""The weights with the smallest validation loss are kept without a copy."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(1400, 16)
y = x[:, :1] + 0.5 * x[:, 1:2].square() + 0.4 * torch.randn(1400, 1)
train_loader = DataLoader(TensorDataset(x[:600], y[:600]), batch_size=50, shuffle=True)
valid_loader = DataLoader(TensorDataset(x[600:1000], y[600:1000]), batch_size=200)
test_loader = DataLoader(TensorDataset(x[1000:], y[1000:]), batch_size=200)

model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1))
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)


def evaluated(loader: DataLoader) -> float:
    """Return the mean squared error."""
    model.eval()
    with torch.no_grad():
        losses = [criterion(model(inputs), targets).item() for inputs, targets in loader]
    return sum(losses) / len(losses)


best, state = float("inf"), {}
for epoch in range(30):
    model.train()
    for inputs, targets in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()
    val_loss = evaluated(valid_loader)
    if val_loss < best:
        best, state = val_loss, model.state_dict()
    print(f"epoch {epoch}: loss {loss.item():.4f}, val loss {val_loss:.4f}")

model.load_state_dict(state)
print(f"best val loss {best:.4f}, test loss {evaluated(test_loader):.4f}")
