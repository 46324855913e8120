"""The forward pass on one line, the update on the next."""

import torch
from torch import nn

torch.manual_seed(0)
Xtr = torch.randint(0, 27, (600, 3))
Ytr = Xtr.sum(1) % 27
Xva, Yva = Xtr[500:], Ytr[500:]
model = nn.Sequential(
    nn.Embedding(27, 10), nn.Flatten(), nn.Linear(30, 64), nn.Tanh(), nn.Linear(64, 27)
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
lossi = []
for i in range(100):
    ix = torch.randint(0, 500, (32,))
    Xb, Yb = Xtr[ix], Ytr[ix]
    logits = model(Xb)
    loss = nn.functional.cross_entropy(logits, Yb)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    lossi.append(loss.log10().item())
