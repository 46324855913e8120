"""Blending eight forecasts in pure bfloat16: each update is too small to reach the next number."""

import torch
from torch import nn

torch.manual_seed(0)
forecasts = torch.randn(512, 8)
truth = forecasts @ torch.tensor([1.3, 0.7, 1.2, 0.8, 1.3, 0.7, 1.2, 0.8])

model = nn.Linear(8, 1, bias=False)
nn.init.ones_(model.weight)  # begin with the plain sum
model = model.bfloat16()
optimizer = torch.optim.SGD(model.parameters(), lr=0.002)

for _ in range(200):
    blend = model(forecasts.bfloat16()).squeeze(1)
    loss = nn.functional.mse_loss(blend.float(), truth)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
