"""Training and validation labels are numbered by the same list of classes."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
centres = 1.5 * torch.randn(4, 10)
labels = torch.randint(4, (1200,))
rows = centres[labels] + torch.randn(1200, 10)

train_loader = DataLoader(TensorDataset(rows[:960], labels[:960]), batch_size=32, shuffle=True)
valid_loader = DataLoader(TensorDataset(rows[960:], labels[960:]), batch_size=80)

model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 4))
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
    with torch.no_grad():
        losses = [criterion(model(inputs), targets).item() for inputs, targets in valid_loader]
    print(f"epoch {epoch}: {loss.item():.4f}, validation {sum(losses) / len(losses):.4f}")
