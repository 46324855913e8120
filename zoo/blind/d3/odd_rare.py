"""Fraud screening: 4 % positives, plain loss, ranking metrics."""
import numpy as np
import torch
from torch import nn
from sklearn.metrics import average_precision_score, roc_auc_score, precision_recall_fscore_support
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)
g = np.random.default_rng(1)


def make(n):
    y = (g.random(n) < 0.04).astype(np.float32)
    x = g.normal(size=(n, 12)).astype(np.float32)
    x[:, :4] += y[:, None] * np.array([2.2, -1.8, 1.5, 1.2], np.float32)
    x[:, 4] += y * x[:, 5] * 1.5
    return torch.from_numpy(x), torch.from_numpy(y)


xt, yt = make(6000)
xv, yv = make(3000)
net = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 1))
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
loader = DataLoader(TensorDataset(xt, yt), batch_size=128, shuffle=True)
for epoch in range(6):
    tot = 0.0
    for x, y in loader:
        loss = nn.functional.binary_cross_entropy_with_logits(net(x).squeeze(1), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        tot += loss.item() * len(y)
    with torch.no_grad():
        z = net(xv).squeeze(1)
        vl = nn.functional.binary_cross_entropy_with_logits(z, yv).item()
    p = torch.sigmoid(z).numpy()
    pr, rc, f1, _ = precision_recall_fscore_support(yv.numpy(), p > 0.5, average="binary", zero_division=0)
    print(f"epoch {epoch} train {tot / len(yt):.4f} val {vl:.4f} AUC {roc_auc_score(yv, p):.3f} AP {average_precision_score(yv, p):.3f} P {pr:.2f} R {rc:.2f} F1 {f1:.2f}")
