"""Two stages of data: the second has noisier inputs, and its loss is higher for good."""

import torch
from torch import nn

torch.manual_seed(0)
weights = torch.randn(12, 5)
clean = torch.randn(12000, 12)
labels = (clean @ weights).argmax(1)
inputs = clean.clone()
inputs[6000:] += 1.5 * torch.randn(6000, 12)

model = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 5))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for x_batch, y_batch in zip(inputs.split(24), labels.split(24), strict=True):
    loss = nn.functional.cross_entropy(model(x_batch), y_batch)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}")
