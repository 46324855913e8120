"""A pass has four batches, which are read in their own order."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(1024, 16)
y = torch.sin(2 * x[:, :1]) + 0.5 * x[:, 1:2] + 0.3 * torch.randn(1024, 1)
loader = DataLoader(TensorDataset(x, y), batch_size=256)

model = nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)

for epoch in range(60):
    for x_batch, y_batch in loader:
        loss = nn.functional.mse_loss(model(x_batch), y_batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
