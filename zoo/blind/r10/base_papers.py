"""Subject classification of papers in a citation graph with a two-layer GCN.

Bag-of-words features, citations as undirected edges, twenty labelled papers per
subject. Plain PyTorch with a sparse propagation matrix; mean over several splits.
"""
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SUBJECTS = ["vision", "speech", "theory", "robotics", "databases", "networks"]


@dataclass
class Config:
    hidden: int = 48
    dropout: float = 0.5
    lr: float = 0.01
    weight_decay: float = 1e-3
    epochs: int = 80
    per_class: int = 20
    n_val: int = 400
    n_test: int = 1200
    splits: int = 3


def simulate_corpus(n=2400, n_words=500, seed=9):
    """The raw tables: (paper id, words, subject) in file order, and pairs of paper ids."""
    rng = np.random.default_rng(seed)
    k = len(SUBJECTS)
    subject = rng.choice(k, n, p=[0.25, 0.2, 0.17, 0.15, 0.13, 0.10])
    frequency = 1.0 / np.arange(1, n_words + 1) ** 0.9
    taste = frequency[None] * np.exp(rng.normal(0, 0.75, (k, n_words)))
    taste /= taste.sum(1, keepdims=True)
    words = np.stack([rng.multinomial(rng.integers(12, 40), taste[s]) for s in subject])
    words = (words > 0).astype(np.float32)
    fame = rng.pareto(2.2, n) + 0.3
    ids = rng.choice(1_000_000, n, replace=False)
    cites = set()
    members = [np.flatnonzero(subject == s) for s in range(k)]
    weights = [fame[m] / fame[m].sum() for m in members]
    for i in range(n):
        for _ in range(rng.poisson(1.8)):
            s = subject[i] if rng.random() < 0.76 else rng.integers(k)
            j = rng.choice(members[s], p=weights[s])
            if i != j:
                cites.add((int(ids[i]), int(ids[j])))
    return ids, words, subject, sorted(cites)


def build_edges(ids, cites):
    position = {int(p): i for i, p in enumerate(ids)}
    pairs = torch.tensor([[position[a], position[b]] for a, b in cites]).T
    both = torch.cat([pairs, pairs.flip(0)], dim=1)
    return torch.unique(both, dim=1)


def propagation_matrix(edges, n):
    """Symmetrically normalised adjacency with self loops (Kipf and Welling)."""
    loops = torch.arange(n).repeat(2, 1)
    index = torch.cat([edges, loops], dim=1)
    degree = torch.bincount(index[0], minlength=n).float()
    scale = degree.rsqrt()
    values = scale[index[0]] * scale[index[1]]
    return torch.sparse_coo_tensor(index, values, (n, n), check_invariants=True).coalesce()


def make_masks(y, cfg, seed):
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(y), generator=generator)
    train_idx = torch.cat([order[y[order] == c][:cfg.per_class] for c in range(len(SUBJECTS))])
    train_mask = torch.zeros(len(y), dtype=torch.bool)
    train_mask[train_idx] = True
    rest = order[~train_mask[order]]
    val_mask = torch.zeros_like(train_mask)
    val_mask[rest[:cfg.n_val]] = True
    test_mask = torch.zeros_like(train_mask)
    test_mask[rest[cfg.n_val:cfg.n_val + cfg.n_test]] = True
    return train_mask, val_mask, test_mask


def standardise(x, train_mask):
    mean, std = x[train_mask].mean(0), x[train_mask].std(0)
    std[std < 0.05] = 1.0
    return (x - mean) / std


class GraphConv(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(n_in, n_out))
        self.bias = nn.Parameter(torch.zeros(n_out))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, a, x):
        return torch.sparse.mm(a, x @ self.weight) + self.bias


class GCN(nn.Module):
    def __init__(self, n_in, n_classes, cfg):
        super().__init__()
        self.first = GraphConv(n_in, cfg.hidden)
        self.second = GraphConv(cfg.hidden, n_classes)
        self.dropout = cfg.dropout

    def forward(self, a, x):
        x = F.dropout(x, self.dropout, self.training)
        h = F.relu(self.first(a, x))
        h = F.dropout(h, self.dropout, self.training)
        return self.second(a, h)


@torch.no_grad()
def accuracy(model, a, x, y, *masks):
    model.eval()
    guess = model(a, x).argmax(1)
    return [(guess[m] == y[m]).float().mean().item() for m in masks]


def run_split(a, x, y, cfg, seed):
    torch.manual_seed(seed)
    train_mask, val_mask, test_mask = make_masks(y, cfg, seed)
    x = standardise(x, train_mask)
    model = GCN(x.shape[1], len(SUBJECTS), cfg)
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr, weight_decay=cfg.weight_decay)
    best_val, best_state = -1.0, None
    for epoch in range(1, cfg.epochs + 1):
        model.train()
        optimizer.zero_grad()
        out = model(a, x)
        loss = F.cross_entropy(out[train_mask], y[train_mask])
        loss.backward()
        optimizer.step()
        train_acc, val_acc = accuracy(model, a, x, y, train_mask, val_mask)
        if val_acc > best_val:
            best_val = val_acc
            best_state = {k: v.clone() for k, v in model.state_dict().items()}
        if epoch % 20 == 0 or epoch == 1:
            val_loss = F.cross_entropy(out[val_mask], y[val_mask]).item()
            print(f"  epoch {epoch:3d} loss {loss.item():.4f} val loss {val_loss:.4f} "
                  f"train acc {train_acc:.3f} val acc {val_acc:.3f}")
    model.load_state_dict(best_state)
    (test_acc,) = accuracy(model, a, x, y, test_mask)
    return best_val, test_acc


def main():
    torch.set_num_threads(1)
    cfg = Config()
    ids, words, subject, cites = simulate_corpus()
    x, y = torch.from_numpy(words), torch.from_numpy(subject)
    edges = build_edges(ids, cites)
    a = propagation_matrix(edges, len(y))
    print(f"{len(y)} papers, {edges.shape[1] // 2} citations, {x.sum(1).mean():.1f} words each; "
          f"largest subject {np.bincount(subject).max() / len(y):.3f}")
    results = []
    for seed in range(cfg.splits):
        print(f"split {seed}")
        results.append(run_split(a, x, y, cfg, seed))
        print(f"  best val acc {results[-1][0]:.3f} test acc {results[-1][1]:.3f}")
    val, test = np.array(results).T
    print(f"mean over splits: val acc {val.mean():.3f} test acc {test.mean():.3f} +- {test.std():.3f}")


if __name__ == "__main__":
    main()
