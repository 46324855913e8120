"""The weight of a penalty is to rise over 150 steps, but is rounded down to 0 until the end."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(1024, 10)
y = x[:, :1] - 2.0 * x[:, 1:2] + 0.5 * x[:, 2:3].square()
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)

model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
step, warmup = 0, 150
for epoch in range(8):
    total = 0.0
    for inputs, targets in loader:
        hidden = model[1](model[0](inputs))
        weight = 0.01 * min(1.0, step // warmup)
        loss = nn.functional.mse_loss(model[2](hidden), targets) + weight * hidden.mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        total += loss.item()
    print(f"epoch {epoch}: loss {total / len(loader):.4f}")
