"""A huge gradient norm that is harmless: one outlier batch, clipped like all others.

holter run examples/scary_norm.py
"""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(20_480, 16)
y = torch.sin(x[:, :1]) + x[:, 1:2] + 0.1 * torch.randn(20_480, 1)
y[12_000] += 4_000  # a typo in the data

model = nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

for step in range(320):
    batch = slice(step * 64, step * 64 + 64)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x[batch]), y[batch])
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if step % 20 == 7:
        print(f"step {step}: loss {loss.item():.4f}, grad norm {norm.item():.1f}")
