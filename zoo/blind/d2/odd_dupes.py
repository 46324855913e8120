# Hotel bookings with coarse columns only: many guests book exactly the same thing, so equal rows are ordinary.
import numpy as np
import torch
import torch.nn as nn
from sklearn.metrics import roc_auc_score

rng = np.random.default_rng(17)
torch.manual_seed(17)
N = 3000
cols = {
    "month": rng.integers(0, 12, N),
    "nights": rng.choice(4, N, p=[.4, .3, .2, .1]),
    "deposit": rng.choice(3, N, p=[.8, .15, .05]),
    "room": rng.choice(4, N, p=[.7, .2, .07, .03]),
    "guests": rng.choice(3, N, p=[.2, .7, .1]),
}
z = (np.sin(cols["month"] / 12 * 6.28) + np.array([-.6, 0, .5, 1.])[cols["nights"]] + np.array([-.5, 3., -1.5])[cols["deposit"]]
     + np.array([.3, -.6, -1, -1.5])[cols["room"]] + np.array([-.8, .2, .8])[cols["guests"]])
y = (rng.random(N) < 1 / (1 + np.exp(-1.2 * z))).astype(np.float32)
codes = np.stack(list(cols.values()), 1)
print(f"{N} bookings, {len(np.unique(codes, axis=0))} distinct ones")
codes, y = torch.tensor(codes), torch.tensor(y)


class Tab(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.embs = nn.ModuleList(nn.Embedding(s, 4) for s in sizes)
        self.mlp = nn.Sequential(nn.Linear(4 * len(sizes), 24), nn.ReLU(), nn.Linear(24, 1))

    def forward(self, c):
        return self.mlp(torch.cat([e(c[:, i]) for i, e in enumerate(self.embs)], 1)).squeeze(1)


model = Tab([12, 4, 3, 4, 3])
opt = torch.optim.Adam(model.parameters(), lr=5e-3)
crit = nn.BCEWithLogitsLoss()
for epoch in range(7):
    running = 0.0
    for b in torch.randperm(2400).split(60):
        opt.zero_grad()
        loss = crit(model(codes[b]), y[b])
        loss.backward()
        opt.step()
        running += loss.item() * len(b)
    with torch.no_grad():
        p = model(codes[2400:])
    print(f"epoch {epoch} loss {running / 2400:.4f} val_loss {crit(p, y[2400:]).item():.4f} val_auc {roc_auc_score(y[2400:], p):.3f}")
