"""A linear model of a noisy target: it is too small to memorise samples."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
rooms, area = torch.randn(2, 2048)
price = 0.8 * rooms + 0.6 * area + torch.randn(2048)
table = TensorDataset(torch.stack([rooms, area], dim=1), price[:, None])
loader = DataLoader(table, batch_size=64, shuffle=True)

model = nn.Linear(2, 1)
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for epoch in range(6):
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
