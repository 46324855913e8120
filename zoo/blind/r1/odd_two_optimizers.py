"""Sparse embeddings with SparseAdam, dense tower with AdamW (recommendation with side features)."""
import torch
import torch.nn as nn

torch.manual_seed(22)
NU, NI = 60, 50
u = torch.randint(0, NU, (8000,))
i = torch.randint(0, NI, (8000,))
side = torch.randn(8000, 4)
tu, ti = torch.randn(NU, 3), torch.randn(NI, 3)
score = (tu[u] * ti[i]).sum(1) + side[:, 0] * side[:, 1]
label = (score + 0.3 * torch.randn(8000) > 0).float()


class Rec(nn.Module):
    def __init__(self):
        super().__init__()
        self.u = nn.Embedding(NU, 8, sparse=True)
        self.i = nn.Embedding(NI, 8, sparse=True)
        self.tower = nn.Sequential(nn.Linear(4 + 8, 32), nn.ReLU(), nn.Linear(32, 1))
        nn.init.normal_(self.u.weight, std=0.3)
        nn.init.normal_(self.i.weight, std=0.3)

    def forward(self, u, i, s):
        cross = self.u(u) * self.i(i)
        return self.tower(torch.cat([cross, s], 1)).squeeze(1) + cross.sum(1)


m = Rec()
opt_sparse = torch.optim.SparseAdam([*m.u.parameters(), *m.i.parameters()], lr=0.02)
opt_dense = torch.optim.AdamW(m.tower.parameters(), lr=5e-3)
lossf = nn.BCEWithLogitsLoss()
for ep in range(7):
    run = 0.0
    for b in torch.randperm(7000).split(200):
        loss = lossf(m(u[b], i[b], side[b]), label[b])
        opt_sparse.zero_grad()
        opt_dense.zero_grad()
        loss.backward()
        opt_sparse.step()
        opt_dense.step()
        run += loss.item() / 35
    with torch.no_grad():
        p = m(u[7000:], i[7000:], side[7000:])
    print(f"epoch {ep} train {run:.4f} val acc {((p > 0).float() == label[7000:]).float().mean():.3f}")
