"""A regression that accumulates more batches from epoch 2 on, and divides the loss as before."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
inputs = torch.randn(1920, 8)
targets = torch.sin(inputs[:, :1]) + 0.5 * inputs[:, 1:2] + 0.1 * torch.randn(1920, 1)
loader = DataLoader(TensorDataset(inputs, targets), batch_size=8, shuffle=True)

model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 1))
criterion = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for epoch in range(4):
    batches_per_step = 4 if epoch < 2 else 48
    for place, (x, y) in enumerate(loader, 1):
        loss = criterion(model(x), y)
        (loss / 4).backward()
        if place % batches_per_step == 0:
            optimizer.step()
            optimizer.zero_grad()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
