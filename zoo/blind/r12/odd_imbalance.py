"""2 % positives, pos_weight in the loss: weighted loss is large and accuracy is below the all-negative rate."""
import numpy as np
import torch
import torch.nn as nn
from sklearn.metrics import average_precision_score, roc_auc_score

torch.manual_seed(10)
n = 20000
x = torch.randn(n, 15)
score = x[:, 0] * 1.5 + x[:, 1] * x[:, 2] + x[:, 3].abs() + 0.5 * torch.randn(n)
y = (score > score.quantile(0.98)).float()
tr, va = slice(0, 15000), slice(15000, n)
pos_weight = (1 - y[tr]).sum() / y[tr].sum()
net = nn.Sequential(nn.Linear(15, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
opt = torch.optim.AdamW(net.parameters(), lr=1.5e-3, weight_decay=0.02)
crit = nn.BCEWithLogitsLoss(pos_weight=pos_weight)
for ep in range(8):
    net.train()
    perm = torch.randperm(15000)
    tot = 0.0
    for i in range(0, 15000, 128):
        j = perm[i:i + 128]
        loss = crit(net(x[tr][j]).squeeze(1), y[tr][j])
        opt.zero_grad()
        loss.backward()
        opt.step()
        tot += loss.item()
    net.eval()
    with torch.no_grad():
        p = net(x[va]).squeeze(1)
    t = y[va].numpy()
    acc = ((p > 0).float().numpy() == t).mean()
    print(f"epoch {ep} loss {tot / 118:.4f} acc {acc:.3f} (all negative {1 - t.mean():.3f}) "
          f"auroc {roc_auc_score(t, p.numpy()):.4f} ap {average_precision_score(t, p.numpy()):.3f} (chance {t.mean():.3f})")
