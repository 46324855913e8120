"""The same with the classes weighted: the rare one counts as much as the other."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
y = (torch.rand(6000) < 0.05).long()
x = torch.randn(6000, 6)
x[:, 0] = torch.where(y == 1, 2.0 * torch.sign(x[:, 0]), 0.7 * x[:, 0])  # far from the middle
train_loader = DataLoader(TensorDataset(x[:4800], y[:4800]), batch_size=32, shuffle=True)
valid_loader = DataLoader(TensorDataset(x[4800:], y[4800:]), batch_size=100)

model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 2))
criterion = nn.CrossEntropyLoss(weight=len(y) / (2 * y.bincount()))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for epoch in range(4):
    model.train()
    for inputs, targets in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()
    model.eval()
    hits = 0
    with torch.no_grad():
        for inputs, targets in valid_loader:
            outputs = model(inputs)
            criterion(outputs, targets)
            hits += (outputs.argmax(1) == targets).sum().item()
    print(f"epoch {epoch}: accuracy {hits / 1200:.3f}")
