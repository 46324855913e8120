"""A penalty on log Z (z-loss) holds the logits near zero."""

import torch
from torch import nn
from torch.nn import functional

torch.manual_seed(0)
centres = torch.randn(4, 64)
y = torch.randint(4, (2048,))
x = centres[y] + 4 * torch.randn(2048, 64)

model = nn.Sequential(nn.Linear(64, 96), nn.GELU(), nn.LayerNorm(96), nn.Linear(96, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for epoch in range(12):
    for index in torch.randperm(len(x)).split(64):
        optimizer.zero_grad()
        logits = model(x[index])
        log_z = torch.logsumexp(logits, dim=1)
        loss = functional.cross_entropy(logits, y[index]) + 1e-3 * log_z.square().mean()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}, log Z {log_z.mean().item():.1f}")
