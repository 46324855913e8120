"""Dropout of 0.98 by someone who meant to keep 98 %: nothing is left to learn from."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
centres = 1.5 * torch.randn(4, 12)
labels = torch.randint(4, (2048,))
rows = centres[labels] + torch.randn(2048, 12)
loader = DataLoader(TensorDataset(rows, labels), batch_size=64, shuffle=True)

model = nn.Sequential(
    nn.Linear(12, 48),
    nn.ReLU(),
    nn.Dropout(0.98),
    nn.Linear(48, 48),
    nn.ReLU(),
    nn.Dropout(0.98),
    nn.Linear(48, 4),
)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for epoch in range(4):
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
