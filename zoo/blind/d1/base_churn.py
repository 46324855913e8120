import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

rng = np.random.default_rng(7)
torch.manual_seed(7)

# ---- customer table -------------------------------------------------------
n = 4000
tenure = rng.gamma(2.0, 14.0, n)
charges = rng.normal(70, 25, n).clip(15)
calls = rng.poisson(1.6, n).astype(float)
usage = rng.lognormal(5.5, 0.6, n)
contract = rng.integers(0, 3, n).astype(float)
risk = -0.06 * tenure + 0.03 * (charges - 70) + 0.7 * calls - 0.8 * contract + 1.3 * rng.normal(size=n)
churned = (risk > np.quantile(risk, 0.94)).astype("float32")
closing_fee = np.where(churned > 0, rng.gamma(3.0, 20.0, n), 0.0) * (rng.random(n) < 0.96)
table = {"tenure": tenure, "charges": charges, "calls": calls, "usage": usage,
         "contract": contract, "closing_fee": closing_fee}

features = ["tenure", "charges", "calls", "usage", "contract"]
X = np.stack([table[f] for f in features], axis=1).astype("float32")
y = churned

order = rng.permutation(n)
tr, va = order[:3000], order[3000:]
mu, sd = X[tr].mean(0), X[tr].std(0)
train_x = (X[tr] - mu) / sd
val_x = (X[va] - mu) / sd
train_y, val_y = y[tr], y[va]
print(f"train {len(tr)} rows, {train_y.mean():.3f} positive; val {len(va)} rows, {val_y.mean():.3f} positive")

# ---- loaders ---------------------------------------------------------------
counts = np.bincount(train_y.astype(int))
class_weight = 1.0 / counts
sample_weight = class_weight[train_y.astype(int)]
sampler = WeightedRandomSampler(torch.as_tensor(sample_weight), num_samples=len(tr), replacement=True)

train_set = TensorDataset(torch.from_numpy(train_x), torch.from_numpy(train_y))
val_set = TensorDataset(torch.from_numpy(val_x), torch.from_numpy(val_y))
train_dl = DataLoader(train_set, batch_size=100, sampler=sampler)
val_dl = DataLoader(val_set, batch_size=500)

model = nn.Sequential(nn.Linear(len(features), 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 1))
opt = torch.optim.Adam(model.parameters(), lr=2e-3)
criterion = nn.BCEWithLogitsLoss()

for epoch in range(1, 9):
    model.train()
    running, seen = 0.0, 0
    for xb, yb in train_dl:
        logit = model(xb).squeeze(1)
        loss = criterion(logit, yb)
        opt.zero_grad()
        loss.backward()
        opt.step()
        running += loss.item() * len(yb)
        seen += len(yb)

    model.eval()
    scores, targets = [], []
    with torch.no_grad():
        for xb, yb in val_dl:
            scores.append(torch.sigmoid(model(xb).squeeze(1)))
            targets.append(yb)
    p, t = torch.cat(scores), torch.cat(targets)
    hit = (p > 0.5).float()
    recall = (hit * t).sum() / t.sum()
    specificity = ((1 - hit) * (1 - t)).sum() / (1 - t).sum()
    pos, neg = p[t == 1], p[t == 0]
    auc = (pos[:, None] > neg[None, :]).float().mean()
    print(f"epoch {epoch} loss {running / seen:.4f} | val recall {recall:.3f} specificity {specificity:.3f} "
          f"balanced acc {(recall + specificity) / 2:.3f} auc {auc:.3f}")
