"""Denoising autoencoder whose decoder is the transpose of the encoder; anomaly score = reconstruction error."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.metrics import roc_auc_score
from torch.utils.data import DataLoader, TensorDataset


class Tied(nn.Module):
    def __init__(self, d, h, k):
        super().__init__()
        self.w1 = nn.Parameter(torch.randn(h, d) / d ** 0.5)
        self.w2 = nn.Parameter(torch.randn(k, h) / h ** 0.5)
        self.b = nn.ParameterList([nn.Parameter(torch.zeros(n)) for n in (h, k, h, d)])

    def forward(self, x):
        h = torch.tanh(F.linear(x, self.w1, self.b[0]))
        z = F.linear(h, self.w2, self.b[1])
        h = torch.tanh(F.linear(z, self.w2.t(), self.b[2]))
        return F.linear(h, self.w1.t(), self.b[3])


def run():
    torch.manual_seed(14)
    torch.set_num_threads(1)
    rng = np.random.default_rng(14)
    W = rng.normal(size=(4, 30)) / 1.5
    good = lambda n: np.sin(rng.normal(size=(n, 4)) @ W) + 0.1 * rng.normal(size=(n, 30))
    tr = good(3000)
    mu, sd = tr.mean(0), tr.std(0)
    te = np.concatenate([good(500), good(500)])
    for i in range(500, 1000):
        k = rng.choice(30, 5, replace=False)
        te[i, k] = tr[rng.integers(0, 3000, 5), k]
    t = lambda a: torch.tensor((a - mu) / sd, dtype=torch.float32)
    X, T, lab = t(tr), t(te), np.r_[np.zeros(500), np.ones(500)]
    net = Tied(30, 48, 6)
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    for ep in range(1, 26):
        tot = 0.0
        for (x,) in DataLoader(TensorDataset(X), batch_size=100, shuffle=True):
            loss = F.mse_loss(net(x + 0.2 * torch.randn_like(x)), x)
            opt.zero_grad()
            loss.backward()
            opt.step()
            tot += loss.item() / 30
        if ep % 5 == 0 or ep == 1:
            with torch.no_grad():
                auc = roc_auc_score(lab, (net(T) - T).pow(2).mean(1).numpy())
            print(f"epoch {ep:2d}  loss {tot:.4f}  AUROC {auc:.4f}")
    print(f"final AUROC {auc:.4f}")


run()
