"""Novelty detection by random network distillation: a predictor learns a random network that is never trained."""
import numpy as np
import torch
import torch.nn as nn
from sklearn.metrics import roc_auc_score


class RND:
    def __init__(self, dim, out=32):
        self.target = nn.Sequential(nn.Linear(dim, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, out))
        for m in self.target:
            if isinstance(m, nn.Linear):
                nn.init.orthogonal_(m.weight, 1.6)
        for p in self.target.parameters():
            p.requires_grad_(False)
        self.target.eval()
        self.pred = nn.Sequential(nn.Linear(dim, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, out))
        self.opt = torch.optim.Adam(self.pred.parameters(), lr=2e-3)

    def errors(self, x):
        return (self.pred(x) - self.target(x)).pow(2).mean(1)

    def step(self, x):
        loss = self.errors(x).mean()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item()


def main():
    torch.set_num_threads(1)
    torch.manual_seed(2)
    rng = np.random.default_rng(2)
    basis = rng.normal(size=(3, 12))
    normal = lambda n: np.tanh(rng.normal(size=(n, 3)) @ basis) + 0.05 * rng.normal(size=(n, 12))
    x = torch.tensor(normal(2500), dtype=torch.float32)
    good = normal(400)
    bad = normal(400)
    for j in range(12):
        bad[:, j] = bad[rng.permutation(400), j]
    test = torch.tensor(np.concatenate([good, bad]), dtype=torch.float32)
    y = np.r_[np.zeros(400), np.ones(400)]
    m = RND(12)
    for epoch in range(1, 31):
        perm = torch.randperm(len(x))
        l = np.mean([m.step(x[perm[i:i + 100]]) for i in range(0, len(x), 100)])
        if epoch % 5 == 0 or epoch == 1:
            with torch.no_grad():
                auc = roc_auc_score(y, m.errors(test).numpy())
            print(f"epoch {epoch:2d}  distillation loss {l:.5f}  AUROC {auc:.4f}")
    print(f"final AUROC {auc:.4f}")


main()
