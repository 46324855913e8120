"""Gains shrink because the targets are small; they are in a group without weight decay."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(2048, 8)
teacher = nn.Sequential(nn.Linear(8, 16, bias=False), nn.LayerNorm(16))
nn.init.constant_(teacher[1].weight, 0.3)
with torch.no_grad():
    y = teacher(x) + 0.02 * torch.randn(2048, 16)

model = nn.Sequential(nn.Linear(8, 16, bias=False), nn.LayerNorm(16))
criterion = nn.MSELoss()
matrices = [model[0].weight]
vectors = [model[1].weight, model[1].bias]
optimizer = torch.optim.AdamW(
    [{"params": matrices, "weight_decay": 0.5}, {"params": vectors, "weight_decay": 0.0}], lr=1e-2
)

for epoch in range(12):
    for index in torch.randperm(len(x)).split(64):
        optimizer.zero_grad()
        loss = criterion(model(x[index]), y[index])
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
