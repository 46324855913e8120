"""Tagging with 40 tags, most of them rare (0.3 % to 4 % of the items). Reported: mean average precision and micro-F1 at
per-tag thresholds chosen on the validation part."""
import numpy as np
import torch
from sklearn.metrics import average_precision_score, f1_score
from torch import nn

torch.set_num_threads(1)
rng = np.random.default_rng(31)
torch.manual_seed(31)
TAGS, D = 40, 64
W = rng.normal(size=(D, TAGS)) / np.sqrt(D)
V = rng.normal(size=(D, TAGS)) / np.sqrt(D)
rate = np.exp(np.linspace(np.log(0.003), np.log(0.04), TAGS))


def items(n):
    x = rng.normal(size=(n, D))
    s = x @ W * 3 + np.abs(x @ V) * 2 + rng.normal(size=(n, TAGS)) * 0.4
    return x, s


x, s = items(20000)
cut = np.array([np.quantile(s[:, j], 1 - rate[j]) for j in range(TAGS)])
y = (s > cut).astype(np.float32)
X, Y = torch.tensor(x, dtype=torch.float32), torch.tensor(y)
tr, va, te = slice(0, 13000), slice(13000, 16000), slice(16000, 20000)
print(f"tags per item {y.mean(0).sum():.2f}, items without any tag {(y.sum(1) == 0).mean():.2f}")

net = nn.Sequential(nn.Linear(D, 256), nn.ReLU(), nn.Linear(256, TAGS))
with torch.no_grad():
    net[-1].bias.copy_(torch.tensor(np.log(rate / (1 - rate)), dtype=torch.float32))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
crit = nn.BCEWithLogitsLoss()
n = len(X[tr])
for epoch in range(1, 19):
    net.train()
    acc = 0.0
    for b in torch.randperm(n).split(100):
        loss = crit(net(X[b]), Y[b])
        opt.zero_grad()
        loss.backward()
        opt.step()
        acc += loss.item() * len(b)
    if epoch % 2 == 0 or epoch == 1:
        net.eval()
        with torch.no_grad():
            z = net(X[va])
        ap = average_precision_score(y[va], z.numpy(), average="macro")
        print(f"epoch {epoch:2d} train bce {acc / n:.4f} val bce {crit(z, Y[va]):.4f} val mAP {ap:.3f} "
              f"tags predicted per item {(z > 0).float().sum(1).mean():.3f}")

net.eval()
with torch.no_grad():
    zv, zt = net(X[va]).numpy(), net(X[te]).numpy()
grid = np.linspace(-5, 1, 25)
best = [max(grid, key=lambda t: f1_score(y[va][:, j], zv[:, j] > t, zero_division=0)) for j in range(TAGS)]
print(f"test mAP {average_precision_score(y[te], zt, average='macro'):.3f}  "
      f"(chance {y[te].mean():.3f})  micro-F1 {f1_score(y[te], zt > np.array(best), average='micro'):.3f}")
