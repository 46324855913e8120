"""Fraud-like data, less than 2 % positives: pos_weight, bias started at the prior, average precision instead of accuracy, threshold from validation."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.metrics import average_precision_score, roc_auc_score

torch.set_num_threads(1)
torch.manual_seed(6)


def data(n):
    x = torch.randn(n, 12)
    s = 2.2 * x[:, 0] * x[:, 1] + 1.6 * x[:, 2].abs() + x[:, 3] - 7.6
    y = torch.bernoulli(torch.sigmoid(2.0 * s))
    return x, y


x_tr, y_tr = data(20000)
x_va, y_va = data(10000)
x_te, y_te = data(10000)
prior = y_tr.mean().item()
pos_weight = torch.tensor(math.sqrt((1 - prior) / prior))
net = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1))
with torch.no_grad():
    odds = pos_weight.item() * prior / (1 - prior)
    net[-1].bias.fill_(math.log(odds))
opt = torch.optim.AdamW(net.parameters(), lr=2e-3, weight_decay=0.02)
print(f"positives {prior:.4f}, weight {pos_weight.item():.1f}")
for epoch in range(8):
    run = 0.0
    for idx in torch.randperm(len(x_tr)).split(256):
        loss = F.binary_cross_entropy_with_logits(net(x_tr[idx]).squeeze(1), y_tr[idx], pos_weight=pos_weight)
        opt.zero_grad()
        loss.backward()
        opt.step()
        run += loss.item() * len(idx)
    with torch.no_grad():
        s = net(x_va).squeeze(1)
    print(f"epoch {epoch} train {run / len(x_tr):.4f} val AP {average_precision_score(y_va, s):.3f} AUC {roc_auc_score(y_va, s):.3f} "
          f"accuracy at 0.5 {((s > 0) == (y_va > 0.5)).float().mean():.4f} (always no: {1 - y_va.mean():.4f})")
cuts = torch.quantile(s, torch.linspace(0.9, 0.999, 60))
f1 = [2 * ((s > c) * y_va).sum() / ((s > c).sum() + y_va.sum()) for c in cuts]
cut = cuts[int(torch.stack(f1).argmax())]
with torch.no_grad():
    s = net(x_te).squeeze(1)
print(f"test AP {average_precision_score(y_te, s):.3f} F1 {2 * ((s > cut) * y_te).sum() / ((s > cut).sum() + y_te.sum()):.3f} at logit {cut:.2f}")
