"""The validation loss is computed on the validation data."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(1400, 8)
y = x[:, :1] + 0.5 * x[:, 1:2].square() + 0.2 * torch.randn(1400, 1)
train_loader = DataLoader(TensorDataset(x[:1000], y[:1000]), batch_size=40, shuffle=True)
val_loader = DataLoader(TensorDataset(x[1000:], y[1000:]), batch_size=200)


def evaluate(model, loader):
    model.eval()
    with torch.no_grad():
        losses = [nn.functional.mse_loss(model(a), b).item() for a, b in loader]
    return sum(losses) / len(losses)


model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(8):
    model.train()
    for inputs, targets in train_loader:
        loss = nn.functional.mse_loss(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    val_loss = evaluate(model, val_loader)
    print(f"epoch {epoch}: validation loss {val_loss:.4f}")
