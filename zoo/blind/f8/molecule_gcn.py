"""Predict a solubility-like scalar of small molecules with a dense GCN."""
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Config:
    n_mol: int = 1500
    max_atoms: int = 9
    feats: int = 6
    hidden: int = 32
    layers: int = 3
    batch: int = 10
    lr: float = 3e-3
    epochs: int = 2
    seed: int = 21


def random_tree(n, gen):
    adj = torch.zeros(n, n)
    for v in range(1, n):
        u = int(torch.randint(0, v, (1,), generator=gen))
        adj[u, v] = adj[v, u] = 1.0
    return adj


def molecule(i, cfg, gen):
    n = int(torch.randint(4, cfg.max_atoms + 1, (1,), generator=gen))
    kind = torch.randint(0, cfg.feats, (n,), generator=gen)
    x = torch.nn.functional.one_hot(kind, cfg.feats).float()
    adj = random_tree(n, gen)
    if i in (1127, 1388):                 # salts
        adj[-1, :] = 0.0
        adj[:, -1] = 0.0
    y = (x[:, 0].sum() - x[:, 1].sum()) * 0.5 + 0.1 * adj.sum() + 0.2 * (adj @ x[:, 2]).sum()
    return x, adj, y


def collate(mols, cfg):
    b = len(mols)
    x = torch.zeros(b, cfg.max_atoms, cfg.feats)
    a = torch.zeros(b, cfg.max_atoms, cfg.max_atoms)
    m = torch.zeros(b, cfg.max_atoms)
    y = torch.zeros(b)
    for k, (xi, ai, yi) in enumerate(mols):
        n = xi.shape[0]
        x[k, :n] = xi
        a[k, :n, :n] = ai
        a[k, range(n, cfg.max_atoms), range(n, cfg.max_atoms)] = 1.0
        m[k, :n] = 1.0
        y[k] = yi
    return x, a, m, y


def propagate(adj):
    deg = adj.sum(-1)
    d = deg.pow(-0.5)
    return d.unsqueeze(-1) * adj * d.unsqueeze(-2)


class GCN(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        dims = [cfg.feats] + [cfg.hidden] * cfg.layers
        self.self_w = nn.ModuleList(nn.Linear(a, b) for a, b in zip(dims, dims[1:]))
        self.nb_w = nn.ModuleList(nn.Linear(a, b, bias=False) for a, b in zip(dims, dims[1:]))
        self.read = nn.Linear(cfg.hidden, 1)

    def forward(self, x, adj, mask):
        p = propagate(adj)
        for ws, wn in zip(self.self_w, self.nb_w):
            x = torch.relu(ws(x) + wn(p @ x))
        return (self.read(x).squeeze(-1) * mask).sum(-1)


cfg = Config()
torch.manual_seed(cfg.seed)
gen = torch.Generator().manual_seed(cfg.seed)
mols = [molecule(i, cfg, gen) for i in range(cfg.n_mol)]
net = GCN(cfg)
opt = torch.optim.Adam(net.parameters(), lr=cfg.lr)
sched = torch.optim.lr_scheduler.StepLR(opt, 100, 0.7)
k = 0
for epoch in range(cfg.epochs):
    for s in range(0, cfg.n_mol, cfg.batch):
        x, a, m, y = collate(mols[s:s + cfg.batch], cfg)
        loss = (net(x, a, m) - y).abs().mean()
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 5.0)
        opt.step()
        sched.step()
        if k % 20 == 0:
            print(f"[{epoch}] {k:4d} mae {loss.item():.3f}")
        k += 1
