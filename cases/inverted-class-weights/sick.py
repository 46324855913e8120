"""`pos_weight` is positives over negatives: the rare class counts for even less."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
inputs = torch.randn(4_000, 12)
labels = (inputs[:, :3].sum(1) + 0.5 * torch.randn(4_000) > 2.2).float().unsqueeze(1)
positives, negatives = labels.sum(), (1 - labels).sum()
loader = DataLoader(TensorDataset(inputs, labels), batch_size=64, shuffle=True)
model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 1))
criterion = nn.BCEWithLogitsLoss(pos_weight=positives / negatives)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for epoch in range(5):
    for x, y in loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
