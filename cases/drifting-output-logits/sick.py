"""A penalty on log Z (z-loss) with the wrong sign: all logits drift away together."""

import torch
from torch import nn
from torch.nn import functional

torch.manual_seed(0)
centres = 1.5 * torch.randn(4, 12)
y = torch.randint(4, (2048,))
x = centres[y] + 2 * torch.randn(2048, 12)

model = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for epoch in range(12):
    for index in torch.randperm(len(x)).split(64):
        optimizer.zero_grad()
        logits = model(x[index])
        log_z = torch.logsumexp(logits, dim=1)
        loss = functional.cross_entropy(logits, y[index]) - 1e-2 * log_z.square().mean()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}, log Z {log_z.mean().item():.1f}")
