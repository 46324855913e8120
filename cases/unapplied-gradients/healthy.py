"""A network for points in two rings; gradients are accumulated over 4 batches."""

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
angle = torch.rand(2_000) * 6.283
label = torch.randint(0, 2, (2_000,))
radius = 1.0 + label + 0.1 * torch.randn(2_000)
points = torch.stack([radius * angle.cos(), radius * angle.sin()], 1)
loader = DataLoader(TensorDataset(points, label), batch_size=50, shuffle=True)

model = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
accumulate = 4

for epoch in range(10):
    for number, (x, y) in enumerate(loader):
        loss = functional.cross_entropy(model(x), y) / accumulate
        loss.backward()
        if (number + 1) % accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()
    print(f"epoch {epoch}: loss {loss.item() * accumulate:.3f}")
