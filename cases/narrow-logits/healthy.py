"""Two views of a sample find each other in both directions, by scaled cosine similarity."""

import torch
from torch import nn
from torch.nn import functional

torch.manual_seed(0)
SCALE = 10.0
samples = torch.randn(4_000, 24)
encoder = nn.Sequential(nn.Linear(24, 64), nn.ReLU(), nn.Linear(64, 32))
optimizer = torch.optim.Adam(encoder.parameters(), lr=3e-3)

for step in range(200):
    batch = samples[torch.randint(0, 4_000, (64,))]
    views = [batch + 0.3 * torch.randn_like(batch) for _ in range(2)]
    one, other = (functional.normalize(encoder(view), dim=1) for view in views)
    logits = one @ other.T * SCALE
    pairs = torch.arange(64)
    loss = (functional.cross_entropy(logits, pairs) + functional.cross_entropy(logits.T, pairs)) / 2
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        print(f"step {step}: loss {loss.item():.3f}")
