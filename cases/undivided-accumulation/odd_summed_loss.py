"""A loop that accumulates losses that are sums over samples, with a learning rate to match."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(1024, 16)
y = torch.sin(x[:, :1]) + 0.5 * x[:, 1:2] + 0.1 * torch.randn(1024, 1)
loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
accumulate = 4

model = nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 1))
criterion = nn.MSELoss(reduction="sum")
optimizer = torch.optim.SGD(model.parameters(), lr=0.02 / 64)

for epoch in range(12):
    for count, (inputs, targets) in enumerate(loader, 1):
        loss = criterion(model(inputs), targets)
        loss.backward()
        if count % accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()
    print(f"epoch {epoch}: loss {loss.item() / len(inputs):.4f}")
