"""Only the last layer is trained, on the single feature of a frozen network."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
rows = torch.randn(2048, 16)
features = nn.Sequential(nn.Linear(16, 1), nn.Linear(1, 48))
labels = (features[0](rows)[:, 0] + rows[:, 1] > 0).long()
loader = DataLoader(TensorDataset(rows, labels), batch_size=64, shuffle=True)

model = nn.Sequential(features.requires_grad_(False), nn.Linear(48, 2))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model[1].parameters(), lr=1e-2)

for epoch in range(8):
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
