"""Gains and biases have a group of their own, without weight decay."""

import torch
from torch import nn

torch.manual_seed(0)
centres = 1.5 * torch.randn(4, 12)
y = torch.randint(4, (2048,))
x = centres[y] + torch.randn(2048, 12)

model = nn.Sequential(
    nn.Linear(12, 48), nn.LayerNorm(48), nn.GELU(), nn.Linear(48, 48), nn.LayerNorm(48), nn.GELU(),
    nn.Linear(48, 4),
)  # fmt: skip
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
matrices = [weight for weight in model.parameters() if weight.dim() > 1]
vectors = [weight for weight in model.parameters() if weight.dim() == 1]
optimizer = torch.optim.AdamW(
    [{"params": matrices, "weight_decay": 1.0}, {"params": vectors, "weight_decay": 0.0}], lr=1e-2
)

for epoch in range(15):
    for index in torch.randperm(len(x)).split(64):
        optimizer.zero_grad()
        loss = criterion(model(x[index]), y[index])
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
