"""Card fraud, 1.5 % positives. Accuracy is useless here and not printed; average precision is the number.
The loss weights positives by sqrt of the imbalance, and the output bias starts at the log prior."""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.metrics import average_precision_score, roc_auc_score
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
torch.manual_seed(0)


def transactions(n):
    y = (torch.rand(n) < 0.015).float()
    x = torch.randn(n, 15)
    kind = torch.randint(0, 3, (n,))
    for k in range(3):
        rows = (y == 1) & (kind == k)
        x[rows, 2 * k] += 3.0
        x[rows, 2 * k + 1] -= 2.5
        x[rows, 10 + k] *= 2.2
    return x, y


xt, yt = transactions(30000)
xv, yv = transactions(15000)
prior = yt.mean().item()
net = nn.Sequential(nn.Linear(15, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1))
nn.init.constant_(net[-1].bias, math.log(prior / (1 - prior)))
opt = torch.optim.Adam(net.parameters(), 1e-3, weight_decay=1e-4)
weight = torch.tensor(((1 - prior) / prior) ** 0.5)
print(f"positives {int(yt.sum())} of {len(yt)}, weight {weight:.1f}")
for epoch in range(8):
    tot = 0
    for a, b in DataLoader(TensorDataset(xt, yt), 256, shuffle=True):
        loss = F.binary_cross_entropy_with_logits(net(a).squeeze(1), b, pos_weight=weight)
        opt.zero_grad()
        loss.backward()
        opt.step()
        tot += loss.item() * len(a)
    with torch.no_grad():
        s = net(xv).squeeze(1)
    print(f"epoch {epoch}: weighted loss {tot / 30000:.4f} AP {average_precision_score(yv, s):.3f} AUC {roc_auc_score(yv, s):.3f}")
print(f"average precision {average_precision_score(yv, s):.3f} (prior {prior:.3f})")
