"""Three epochs where thirty are needed: training stops while the loss has hardly begun to fall."""

import torch
from torch import nn

torch.manual_seed(0)
centres = torch.randn(20, 32)
y = torch.randint(20, (9600,))
x = centres[y] + 0.7 * torch.randn(9600, 32)

model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 20))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-5)

for epoch in range(3):
    for batch in torch.randperm(9600).split(48):
        loss = nn.functional.cross_entropy(model(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
