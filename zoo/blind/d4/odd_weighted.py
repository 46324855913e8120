"""Defect detection on 5 % positives with a weighted sampler; logits are shifted back to the natural rate for reporting."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler
from sklearn.metrics import brier_score_loss, roc_auc_score

torch.set_num_threads(1)
torch.manual_seed(21)


def parts(n):
    x = torch.randn(n, 10)
    z = -5.6 + 1.8 * x[:, 0] * (x[:, 1] > 0) + 1.5 * x[:, 2] + 1.2 * x[:, 3].abs()
    return x, (torch.rand(n) < torch.sigmoid(z)).float()


x, y = parts(16000)
xv, yv = parts(8000)
rate = y.mean()
weight = torch.where(y == 1, 0.5 / rate, 0.5 / (1 - rate))
loader = DataLoader(TensorDataset(x, y), batch_size=128, sampler=WeightedRandomSampler(weight, num_samples=len(y), replacement=True))
shift = torch.log(rate / (1 - rate))
net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-3, weight_decay=1e-3)
sched = torch.optim.lr_scheduler.StepLR(opt, 4, 0.3)
bce = nn.BCEWithLogitsLoss()
print(f"defect rate {rate:.4f}, prior shift {shift:.2f}")
for epoch in range(10):
    net.train()
    losses = []
    for xb, yb in loader:
        loss = bce(net(xb).squeeze(1), yb)
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    sched.step()
    net.eval()
    with torch.no_grad():
        logit = net(xv).squeeze(1) + shift
    p = torch.sigmoid(logit).numpy()
    print(f"epoch {epoch} balanced train loss {np.mean(losses):.4f} | natural val loss {bce(logit, yv):.4f} auc {roc_auc_score(yv, p):.4f} "
          f"brier {brier_score_loss(yv, p):.4f} expected defects {p.sum():.0f} found {yv.sum():.0f}")
