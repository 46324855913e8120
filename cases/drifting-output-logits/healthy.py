"""A penalty on log Z (z-loss) keeps the logits near zero."""

import torch
from torch import nn
from torch.nn import functional

torch.manual_seed(0)
centres = 1.5 * torch.randn(4, 12)
y = torch.randint(4, (2048,))
x = centres[y] + 2 * torch.randn(2048, 12)

model = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 4))
weights = [each for each in model.parameters() if each is not model[2].bias]
optimizer = torch.optim.Adam(
    [{"params": weights, "lr": 3e-3}, {"params": [model[2].bias], "lr": 0.3}]
)

for epoch in range(16):
    for index in torch.randperm(len(x)).split(64):
        optimizer.zero_grad()
        logits = model(x[index])
        loss = functional.cross_entropy(logits, y[index])
        log_z = torch.logsumexp(logits, dim=1)
        loss = loss + 1e-3 * log_z.square().mean()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}, log Z {log_z.mean().item():.1f}")
