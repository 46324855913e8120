"""Click prediction on an endless stream: one pass, every batch is scored before it is learnt (progressive validation)."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset
from sklearn.metrics import roc_auc_score

torch.set_num_threads(1)
torch.manual_seed(30)


class Clicks(IterableDataset):
    """Impressions in the order in which they happened; tastes move slowly."""

    def __init__(self, total, seed):
        self.total, self.seed = total, seed

    def __iter__(self):
        rng = np.random.default_rng(self.seed)
        ad = rng.normal(0, 1, (400, 5))
        site = rng.normal(0, 1, (60, 5))
        done = 0
        while done < self.total:
            site = 0.998 * site + 0.06 * rng.normal(0, 1, site.shape)
            a, s = rng.integers(0, 400, 256), rng.integers(0, 60, 256)
            h = rng.random(256).astype(np.float32)
            z = (ad[a] * site[s]).sum(1) * 0.8 - 1.5 + 0.5 * np.sin(6.28 * h)
            y = (rng.random(256) < 1 / (1 + np.exp(-z))).astype(np.float32)
            for i in range(256):
                yield int(a[i]), int(s[i]), h[i], y[i]
            done += 256


class Factor(nn.Module):
    def __init__(self):
        super().__init__()
        self.ad, self.site = nn.Embedding(400, 12), nn.Embedding(60, 12)
        nn.init.normal_(self.ad.weight, std=0.3)
        nn.init.normal_(self.site.weight, std=0.3)
        self.mlp = nn.Sequential(nn.Linear(25, 24), nn.ReLU(), nn.Linear(24, 1))

    def forward(self, a, s, h):
        ea, es = self.ad(a), self.site(s)
        return (ea * es).sum(1) + self.mlp(torch.cat([ea, es, h[:, None]], 1)).squeeze(1)


net = Factor()
opt = torch.optim.Adam(net.parameters(), lr=4e-3)
bce = nn.BCEWithLogitsLoss()
seen, ps, ys, ls = 0, [], [], []
for step, (a, s, h, y) in enumerate(DataLoader(Clicks(330_000, 5), batch_size=256), 1):
    h, y = h.float(), y.float()
    z = net(a, s, h)
    loss = bce(z, y)
    ps.append(torch.sigmoid(z.detach()))
    ys.append(y)
    ls.append(loss.item())
    opt.zero_grad()
    loss.backward()
    opt.step()
    seen += len(y)
    if step % 128 == 0:
        print(f"{seen:7d} impressions, progressive log loss {np.mean(ls):.4f} AUC {roc_auc_score(torch.cat(ys), torch.cat(ps)):.4f}")
        ps, ys, ls = [], [], []
