"""Anomaly score from a mixture density over tightly scaled sensor readings; log-densities are large."""
import numpy as np
import torch
import torch.nn as nn
from sklearn.metrics import roc_auc_score
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)
torch.set_num_threads(1)
rng = np.random.default_rng(1)


def readings(n):
    a = rng.uniform(0, 2 * np.pi, n)
    p = np.stack([np.cos(a), np.sin(2 * a), np.cos(3 * a)], 1) * 0.02
    return p + rng.normal(0, 0.001, p.shape)


train = torch.tensor(readings(3000), dtype=torch.float32)
good = torch.tensor(readings(500), dtype=torch.float32)
bad = torch.tensor(rng.uniform(-0.022, 0.022, (500, 3)), dtype=torch.float32)


class Mixture(nn.Module):
    def __init__(self, x, k=40):
        super().__init__()
        self.mu = nn.Parameter(x[torch.randperm(len(x))[:k]].clone())
        self.log_s = nn.Parameter(torch.full((k, 3), -4.5))
        self.w = nn.Parameter(torch.zeros(k))

    def log_prob(self, x):
        comp = torch.distributions.Normal(self.mu, self.log_s.exp()).log_prob(x[:, None]).sum(-1)
        return torch.logsumexp(comp + self.w.log_softmax(0), 1)


model = Mixture(train)
opt = torch.optim.Adam([{"params": [model.mu], "lr": 3e-4}, {"params": [model.log_s, model.w], "lr": 2e-2}])
for epoch in range(12):
    tot = 0.0
    for (x,) in DataLoader(TensorDataset(train), batch_size=100, shuffle=True):
        loss = -model.log_prob(x).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        tot += loss.item() * len(x)
    with torch.no_grad():
        g, b = -model.log_prob(good), -model.log_prob(bad)
    auc = roc_auc_score(np.r_[np.zeros(500), np.ones(500)], torch.cat([g, b]).numpy())
    print(f"epoch {epoch:2d}  loss {tot / len(train):8.3f}  held-out nll {g.mean():8.3f}  AUROC {auc:.4f}")
print(f"final loss {tot / len(train):.3f}  AUROC {auc:.4f}")
