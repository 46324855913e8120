"""A contrastive training whose temperature falls to a bound."""

import torch
from torch import nn
from torch.nn import functional

torch.manual_seed(0)
CLASSES, BATCH, STEPS = 6, 32, 220
centers = torch.randn(CLASSES, 12)
LEAST = 0.1

model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 8))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)


def pairs():
    clean = centers[torch.randint(0, CLASSES, (BATCH,))]
    return clean + 0.3 * torch.randn(BATCH, 12), clean + 0.3 * torch.randn(BATCH, 12)


for step in range(STEPS):
    one, other = pairs()
    temperature = max(LEAST, 0.5 * 0.98**step)
    similar = (
        functional.normalize(model(one), dim=1) @ functional.normalize(model(other), dim=1).t()
    )
    weights = torch.exp(similar / temperature)
    loss = (weights.sum(1) / weights.diagonal()).log().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        print(f"step {step}: loss {loss.item():.4f}")
