"""Card fraud screening: about 2 % positives, plain binary cross-entropy, ranked review list."""
import numpy as np
import torch
import torch.nn as nn
from sklearn.metrics import average_precision_score, roc_auc_score

torch.set_num_threads(1)
torch.manual_seed(0)
rng = np.random.default_rng(0)


def cards(n):
    x = rng.normal(size=(n, 12)).astype(np.float32)
    z = -7.2 + 1.6 * x[:, 0] + 1.4 * np.maximum(x[:, 1], 0) * x[:, 2] + 1.2 * np.abs(x[:, 3]) - 1.1 * x[:, 4]
    y = (rng.random(n) < 1 / (1 + np.exp(-z))).astype(np.float32)
    return torch.from_numpy(x), torch.from_numpy(y)


x_tr, y_tr = cards(40000)
x_va, y_va = cards(15000)
net = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 1))
opt = torch.optim.Adam(net.parameters(), lr=1.5e-3)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 8)
bce = nn.BCEWithLogitsLoss()
print(f"share of fraud: train {y_tr.mean():.4f}, validation {y_va.mean():.4f}")
for epoch in range(8):
    perm = torch.randperm(len(x_tr))
    run = 0.0
    for i in range(0, len(perm), 256):
        idx = perm[i:i + 256]
        loss = bce(net(x_tr[idx]).squeeze(1), y_tr[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        run += loss.item() * len(idx)
    sched.step()
    with torch.no_grad():
        z = net(x_va).squeeze(1)
        val = bce(z, y_va).item()
    p = torch.sigmoid(z)
    top = p.topk(300).indices
    print(f"epoch {epoch} train {run / len(x_tr):.4f} val {val:.4f} accuracy {((p > 0.5) == (y_va > 0.5)).float().mean():.4f} "
          f"AUC {roc_auc_score(y_va, p):.4f} AP {average_precision_score(y_va, p):.4f} "
          f"fraud in the 300 reviewed {y_va[top].sum():.0f} of {y_va.sum():.0f}")
print(f"sum of probabilities {p.sum():.0f}, frauds {y_va.sum():.0f}")
