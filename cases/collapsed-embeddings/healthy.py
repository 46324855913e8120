"""Two views of a thing are pulled together, and apart from those of other things."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
things = torch.randn(1024, 8) @ torch.randn(8, 32) / 3
loader = DataLoader(TensorDataset(things), batch_size=64, shuffle=True)

model = nn.Sequential(nn.Linear(32, 64), nn.Tanh(), nn.Linear(64, 16))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)


def view(x):
    return x + 0.3 * torch.randn_like(x)


for epoch in range(16):
    for (x,) in loader:
        first, second = model(view(x)), model(view(x))
        similarity = nn.functional.cosine_similarity(first[:, None], second[None], dim=2)
        loss = nn.functional.cross_entropy(similarity / 0.2, torch.arange(len(x)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f} spread {first.std(0).mean():.4f}")
