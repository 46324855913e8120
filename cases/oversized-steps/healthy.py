"""A regression by plain gradient descent, with steps that are small enough."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
inputs = torch.randn(1600, 8)
targets = torch.sin(inputs[:, :1]) + 0.5 * inputs[:, 1:2]
loader = DataLoader(TensorDataset(inputs, targets), batch_size=32, shuffle=True)

model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
criterion = nn.MSELoss()
RATE = 0.05
optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=0.9)
warmup = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.01, total_iters=120)

for epoch in range(6):
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        warmup.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
