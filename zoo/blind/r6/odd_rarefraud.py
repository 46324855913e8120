"""Fraud detection with 1% positives, handled with pos_weight. Goal: average precision above 0.5 and recall above 0.8 at the
threshold that is chosen on validation data. The weighted loss is not comparable to a plain log loss."""
import numpy as np
import torch
import torch.nn as nn
from sklearn.metrics import average_precision_score, recall_score

torch.set_num_threads(1)
torch.manual_seed(1)
rng = np.random.default_rng(1)


def transactions(n):
    x = rng.normal(0, 1, (n, 12)).astype(np.float32)
    s = 1.6 * x[:, 0] * x[:, 1] + 1.5 * x[:, 2] + 1.2 * np.abs(x[:, 3]) - 0.8 * x[:, 4]
    cut = np.quantile(s, 0.99)
    return torch.from_numpy(x), torch.from_numpy((s + rng.normal(0, 0.3, n) > cut).astype(np.float32))


(xtr, ytr), (xva, yva), (xte, yte) = transactions(30000), transactions(10000), transactions(10000)
print("share of fraud", ytr.mean().item())
model = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1))
crit = nn.BCEWithLogitsLoss(pos_weight=(1 - ytr.mean()) / ytr.mean())
opt = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(12):
    perm = torch.randperm(len(xtr))
    losses = []
    for idx in perm.split(500):
        loss = crit(model(xtr[idx]).squeeze(1), ytr[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    with torch.no_grad():
        sv = model(xva).squeeze(1)
    print(f"epoch {epoch} weighted loss {np.mean(losses):.3f} val AP {average_precision_score(yva, sv):.3f}")
with torch.no_grad():
    sv, st = model(xva).squeeze(1), model(xte).squeeze(1)
thr = np.quantile(sv[yva == 1].numpy(), 0.1)
print(f"test AP {average_precision_score(yte, st):.3f}  recall {recall_score(yte, st.numpy() > thr):.3f}  flagged {float((st > thr).float().mean()):.4f}")
