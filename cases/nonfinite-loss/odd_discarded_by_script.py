"""A masked mean over a batch without a single label is 0 / 0; the loop discards that step."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(1024, 8)
y = (x[:, 0] + 0.5 * x[:, 1] > 0).long()
labelled = torch.ones(1024)
labelled[256:288] = 0.0  # one batch of 32

model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for epoch in range(8):
    for index in torch.arange(1024).split(32):
        losses = nn.functional.cross_entropy(model(x[index]), y[index], reduction="none")
        loss = (losses * labelled[index]).sum() / labelled[index].sum()
        optimizer.zero_grad()
        loss.backward()
        if not torch.isfinite(loss):
            continue
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
