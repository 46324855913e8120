"""Citation graph: GCN node classification, then link prediction with a GCN encoder (no graph library)."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
rng = np.random.default_rng(0)


def load_graph(path="citations.npz"):
    """x (N, D) bag of words, y (N,) topic, edges (E, 2) with each undirected pair once, no self loops."""
    d = np.load(path)
    x = torch.tensor(d["x"], dtype=torch.float32)
    x = x / x.sum(dim=1, keepdim=True).clamp(min=1)
    return x, torch.tensor(d["y"], dtype=torch.long), torch.tensor(d["edges"], dtype=torch.long)


def normalised_adjacency(edges, n):
    """D^-1/2 (A + I) D^-1/2 as a sparse tensor; edges are given once per pair."""
    loops = torch.arange(n).unsqueeze(1).expand(n, 2)
    both = torch.cat([edges, edges.flip(1), loops], dim=0)
    row, col = both[:, 0], both[:, 1]
    deg = torch.zeros(n).index_add_(0, row, torch.ones(len(row)))
    w = deg[row].pow(-0.5) * deg[col].pow(-0.5)
    return torch.sparse_coo_tensor(torch.stack([row, col]), w, (n, n)).coalesce()


class GCN(nn.Module):
    def __init__(self, d_in, d_hidden, d_out, dropout=0.5):
        super().__init__()
        self.lin1 = nn.Linear(d_in, d_hidden)
        self.lin2 = nn.Linear(d_hidden, d_out)
        self.dropout = dropout

    def forward(self, x, adj):
        x = F.dropout(x, self.dropout, training=self.training)
        x = F.relu(torch.sparse.mm(adj, self.lin1(x)))
        x = F.dropout(x, self.dropout, training=self.training)
        return torch.sparse.mm(adj, self.lin2(x))


def node_split(y, per_class=20, n_valid=500):
    train = torch.zeros(len(y), dtype=torch.bool)
    for c in range(int(y.max()) + 1):
        idx = torch.nonzero(y == c).squeeze(1)
        train[idx[torch.randperm(len(idx))[:per_class]]] = True
    rest = torch.nonzero(~train).squeeze(1)
    rest = rest[torch.randperm(len(rest))]
    valid, test = torch.zeros_like(train), torch.zeros_like(train)
    valid[rest[:n_valid]] = True
    test[rest[n_valid:]] = True
    return train, valid, test


def train_nodes(x, y, edges, epochs=200):
    adj = normalised_adjacency(edges, len(x))
    train, valid, test = node_split(y)
    model = GCN(x.size(1), 32, int(y.max()) + 1)
    opt = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    best_valid, best_test = 0.0, 0.0
    for epoch in range(epochs):
        model.train()
        loss = F.cross_entropy(model(x, adj)[train], y[train])
        opt.zero_grad()
        loss.backward()
        opt.step()
        model.eval()
        with torch.no_grad():
            hit = model(x, adj).argmax(dim=1) == y
        acc_valid, acc_test = hit[valid].float().mean().item(), hit[test].float().mean().item()
        if acc_valid > best_valid:
            best_valid, best_test = acc_valid, acc_test
    print(f"nodes: valid {best_valid:.4f} test {best_test:.4f}")


def pair_keys(edges, n):
    lo, hi = edges.min(dim=1).values, edges.max(dim=1).values
    return set((lo * n + hi).tolist())


def sample_negatives(n, k, known):
    """k node pairs which are no edge; known holds a * n + b for a < b."""
    out = []
    while len(out) < k:
        a, b = (int(v) for v in rng.integers(0, n, size=2))
        a, b = min(a, b), max(a, b)
        if a != b and a * n + b not in known:
            out.append((a, b))
    return torch.tensor(out)


def score(z, pairs):
    return (z[pairs[:, 0]] * z[pairs[:, 1]]).sum(dim=1)


def auc(pos, neg):
    diff = pos.unsqueeze(1) - neg.unsqueeze(0)
    return ((diff > 0).float() + 0.5 * (diff == 0).float()).mean().item()


def train_links(x, edges, epochs=150):
    n = len(x)
    edges = edges[torch.randperm(len(edges))]
    n_hold = len(edges) // 10
    valid_pos, test_pos, train_pos = edges[:n_hold], edges[n_hold:2 * n_hold], edges[2 * n_hold:]
    known_all, known_train = pair_keys(edges, n), pair_keys(train_pos, n)
    valid_neg, test_neg = sample_negatives(n, n_hold, known_all), sample_negatives(n, n_hold, known_all)
    adj = normalised_adjacency(train_pos, n)
    model = GCN(x.size(1), 64, 32, dropout=0.2)
    opt = torch.optim.Adam(model.parameters(), lr=0.005)
    best, best_state = 0.0, None
    for epoch in range(epochs):
        model.train()
        z = model(x, adj)
        neg = sample_negatives(n, len(train_pos), known_train)
        logits = torch.cat([score(z, train_pos), score(z, neg)])
        target = torch.cat([torch.ones(len(train_pos)), torch.zeros(len(neg))])
        loss = F.binary_cross_entropy_with_logits(logits, target)
        opt.zero_grad()
        loss.backward()
        opt.step()
        model.eval()
        with torch.no_grad():
            z = model(x, adj)
            value = auc(score(z, valid_pos), score(z, valid_neg))
        if value > best:
            best = value
            best_state = {k: v.clone() for k, v in model.state_dict().items()}
    model.load_state_dict(best_state)
    model.eval()
    with torch.no_grad():
        z = model(x, adj)
        print(f"links: valid AUC {best:.4f} test AUC {auc(score(z, test_pos), score(z, test_neg)):.4f}")


if __name__ == "__main__":
    x, y, edges = load_graph()
    train_nodes(x, y, edges)
    train_links(x, edges)
