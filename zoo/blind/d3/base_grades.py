"""Severity grade (four ordered levels) from a wide panel of measurements."""
import os
import tempfile

import numpy as np
import torch
import torch.nn as nn
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.metrics import cohen_kappa_score, mean_absolute_error
from sklearn.preprocessing import StandardScaler
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(9)
rng = np.random.default_rng(9)
N, D = 620, 2500
panel = rng.normal(size=(N, D))
w = np.zeros(D)
w[rng.choice(D, 8, replace=False)] = rng.choice([-1, 1], 8) * rng.uniform(0.25, 0.42, 8)
severity = panel @ w + rng.normal(0, 0.9, N)
edges = np.quantile(severity, [0.3, 0.6, 0.85])
words = np.array(["none", "mild", "moderate", "severe"])
labels = words[np.digitize(severity, edges)]

ORDER = ["none", "mild", "moderate", "severe"]
code = {g: k for k, g in enumerate(ORDER)}
y = np.array([code[s] for s in labels])

tr, va, te = np.split(rng.permutation(N), [360, 490])
selector = SelectKBest(f_classif, k=40).fit(panel[tr], y[tr])
x = selector.transform(panel)
x = StandardScaler().fit(x[tr]).transform(x)


def loader(idx, train=False):
    data = TensorDataset(torch.tensor(x[idx], dtype=torch.float32), torch.tensor(y[idx]))
    return DataLoader(data, batch_size=16, shuffle=train)


class Ordinal(nn.Module):
    """One score, three increasing cut points."""

    def __init__(self):
        super().__init__()
        self.score = nn.Sequential(nn.Linear(40, 24), nn.ReLU(), nn.Dropout(0.2), nn.Linear(24, 1))
        self.first = nn.Parameter(torch.tensor(-1.0))
        self.gaps = nn.Parameter(torch.zeros(2))

    def forward(self, x):
        cuts = torch.cat([self.first[None], self.first + torch.cumsum(nn.functional.softplus(self.gaps), 0)])
        return self.score(x) - cuts


def ordinal_loss(logits, y):
    target = (y[:, None] > torch.arange(3)).float()
    return nn.functional.binary_cross_entropy_with_logits(logits, target)


@torch.no_grad()
def evaluate(model, batches):
    model.eval()
    truth, guess = [], []
    for xb, yb in batches:
        guess += (model(xb) > 0).sum(1).tolist()
        truth += yb.tolist()
    return cohen_kappa_score(truth, guess, weights="quadratic", labels=[0, 1, 2, 3]), mean_absolute_error(truth, guess)


train_loader, val_loader, test_loader = loader(tr, True), loader(va), loader(te)
model = Ordinal()
opt = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-2)
path = os.path.join(tempfile.mkdtemp(), "grade.pt")
best = None
for epoch in range(20):
    model.train()
    total = 0.0
    for xb, yb in train_loader:
        opt.zero_grad()
        loss = ordinal_loss(model(xb), yb)
        loss.backward()
        opt.step()
        total += loss.item() * len(yb)
    kappa, err = evaluate(model, val_loader)
    if best is None or kappa > best:
        best = kappa
        torch.save(model.state_dict(), path)
    print(f"epoch {epoch:2d} train loss {total / len(tr):.4f} val QWK {kappa:.3f} val MAE {err:.3f}")
model.load_state_dict(torch.load(path))
kappa, err = evaluate(model, test_loader)
print(f"selected val QWK {best:.3f} -> test QWK {kappa:.4f} test MAE {err:.3f}")
