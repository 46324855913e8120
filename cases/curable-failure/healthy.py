"""The same training with a dropout of 0.03."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
centres = 1.5 * torch.randn(4, 12)
labels = torch.randint(4, (2048,))
rows = centres[labels] + torch.randn(2048, 12)
loader = DataLoader(TensorDataset(rows, labels), batch_size=64, shuffle=True)


def block(width):
    return nn.Sequential(nn.Linear(width, 48), nn.ReLU(), nn.Dropout(0.03), nn.LayerNorm(48))


model = nn.Sequential(block(12), block(48), block(48), nn.Linear(48, 4))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

for epoch in range(4):
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
