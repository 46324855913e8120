"""Embeddings of two noisy views of each row: the first view is compared with itself."""

import torch
from torch import nn
from torch.nn import functional

torch.manual_seed(0)
rows = torch.randn(1024, 4) @ torch.randn(4, 16)


def contrastive(z1, z2):
    z = functional.normalize(torch.cat([z1, z2]), dim=1)
    n = len(z1)
    similarities = z @ z.t() / 0.2
    similarities.fill_diagonal_(-1e4)
    positives = torch.cat([torch.arange(n, 2 * n), torch.arange(n)])
    return functional.cross_entropy(similarities, positives)


model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 16))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(10):
    total = 0.0
    for batch in torch.randperm(1024).split(64):
        clean = rows[batch]
        one, other = (clean + 0.5 * torch.randn_like(clean) for _ in range(2))
        loss = contrastive(model(one), model(one))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}: loss {total / 16:.4f}")
