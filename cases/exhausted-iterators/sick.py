"""An optimizer and a clipping call share one iterator over parameters: nothing is clipped."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(512, 8)
y = x[:, :1] * 2.0 - x[:, 1:2] + 0.5 * x[:, 2:3] ** 2

model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
params = model.parameters()
optimizer = torch.optim.Adam(params, lr=3e-3)
for epoch in range(20):
    total = 0.0
    for batch in torch.randperm(512).split(32):
        loss = nn.functional.mse_loss(model(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(params, 8.0)
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}: loss {total / 16:.4f}")
