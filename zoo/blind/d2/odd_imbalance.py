"""Bookings cancelled on the day of arrival are rare (about 5 percent); we only need a ranking of the bookings."""
import numpy as np
import torch
from torch import nn
from sklearn.metrics import average_precision_score, roc_auc_score

rng = np.random.default_rng(1)
torch.manual_seed(1)
n = 4000
lead, adr = rng.gamma(1.5, 60, n), rng.normal(100, 30, n)
channel = rng.integers(0, 6, n)
returning = rng.random(n) < 0.3
logit = -4.6 + 0.015 * lead + 0.012 * (adr - 100) + np.array([0, .8, -1, 1.5, .2, -.5])[channel] - 1.8 * returning
y = (rng.random(n) < 1 / (1 + np.exp(-1.2 * logit))).astype(np.float32)
x = np.column_stack([np.log1p(lead), adr / 100, returning, np.eye(6)[channel]]).astype(np.float32)
x[:, :2] = (x[:, :2] - x[:3000, :2].mean(0)) / x[:3000, :2].std(0)
print(f"share of day-of-arrival cancellations: {y[:3000].mean():.3f} train, {y[3000:].mean():.3f} val")

X, Y = torch.from_numpy(x[:3000]), torch.from_numpy(y[:3000])
XV, YV = torch.from_numpy(x[3000:]), y[3000:]
net = nn.Sequential(nn.Linear(9, 24), nn.ReLU(), nn.Linear(24, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
loss_fn = nn.BCEWithLogitsLoss()
for epoch in range(8):
    total = 0
    for b in torch.randperm(3000).split(100):
        opt.zero_grad()
        loss = loss_fn(net(X[b]).squeeze(1), Y[b])
        loss.backward()
        opt.step()
        total += loss.item() * len(b)
    with torch.no_grad():
        s = net(XV).squeeze(1)
    acc = ((s > 0).numpy() == YV).mean()
    print(f"{epoch} loss {total / 3000:.4f} val loss {loss_fn(s, torch.from_numpy(YV)).item():.4f} "
          f"AUC {roc_auc_score(YV, s):.3f} AP {average_precision_score(YV, s):.3f} acc {acc:.3f}")
