"""Several statements on one line, as in short tutorials and notebooks."""

import torch, torch.nn as nn, torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
xs = torch.randn(400, 6)
ys = (xs.sum(1) > 0).long()
train_dl = DataLoader(TensorDataset(xs[:320], ys[:320]), 16, shuffle=True)
valid_dl = DataLoader(TensorDataset(xs[320:], ys[320:]), 40)
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
opt = torch.optim.Adam(model.parameters(), 1e-2)
for epoch in range(5):
    model.train()
    for xb, yb in train_dl:
        pred = model(xb)
        loss = F.cross_entropy(pred, yb)
        opt.zero_grad()
        loss.backward()
        opt.step()
    model.eval()
    with torch.no_grad():
        print(epoch, sum(F.cross_entropy(model(x), y) for x, y in valid_dl) / len(valid_dl))
