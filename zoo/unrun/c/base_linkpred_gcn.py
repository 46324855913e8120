import argparse

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.metrics import average_precision_score, roc_auc_score


def load_graph(path):
    """npz with features (n, f) and undirected edges (m, 2), each pair once."""
    z = np.load(path)
    edges = np.unique(np.sort(z["edges"], axis=1), axis=0)
    edges = edges[edges[:, 0] != edges[:, 1]]
    return torch.tensor(z["features"], dtype=torch.float32), torch.tensor(edges.T, dtype=torch.long)


def split_edges(edges, val_ratio, test_ratio):
    m = edges.size(1)
    perm = torch.randperm(m)
    n_val, n_test = int(val_ratio * m), int(test_ratio * m)
    val, test = edges[:, perm[:n_val]], edges[:, perm[n_val:n_val + n_test]]
    return edges[:, perm[n_val + n_test:]], val, test


def sample_negatives(num_nodes, count, forbidden):
    """Random pairs (u < v) that are not in the set of forbidden keys u * n + v."""
    out = []
    while len(out) < count:
        u, v = torch.randint(num_nodes, (2,)).tolist()
        if u == v:
            continue
        u, v = min(u, v), max(u, v)
        if u * num_nodes + v not in forbidden:
            out.append((u, v))
    return torch.tensor(out).T


def normalised_adjacency(edges, num_nodes):
    loops = torch.arange(num_nodes).repeat(2, 1)
    index = torch.cat([edges, edges.flip(0), loops], dim=1)
    deg = torch.zeros(num_nodes).scatter_add_(0, index[0], torch.ones(index.size(1)))
    weight = deg[index[0]].pow(-0.5) * deg[index[1]].pow(-0.5)
    return torch.sparse_coo_tensor(index, weight, (num_nodes, num_nodes)).coalesce()


class Encoder(nn.Module):
    def __init__(self, in_dim, hidden, out_dim, dropout):
        super().__init__()
        self.lin1 = nn.Linear(in_dim, hidden)
        self.lin2 = nn.Linear(hidden, out_dim)
        self.dropout = dropout

    def forward(self, x, adj):
        x = F.dropout(x, self.dropout, training=self.training)
        h = F.relu(torch.sparse.mm(adj, self.lin1(x)))
        h = F.dropout(h, self.dropout, training=self.training)
        return torch.sparse.mm(adj, self.lin2(h))


def decode(z, pairs):
    return (z[pairs[0]] * z[pairs[1]]).sum(dim=1)


@torch.no_grad()
def evaluate(model, x, adj, pos, neg):
    model.eval()
    z = model(x, adj)
    scores = torch.cat([decode(z, pos), decode(z, neg)]).sigmoid().cpu().numpy()
    labels = np.concatenate([np.ones(pos.size(1)), np.zeros(neg.size(1))])
    return roc_auc_score(labels, scores), average_precision_score(labels, scores)


def train_step(model, optimizer, x, adj, train_pos, known):
    model.train()
    neg = sample_negatives(x.size(0), train_pos.size(1), known).to(x.device)
    z = model(x, adj)
    logits = torch.cat([decode(z, train_pos), decode(z, neg)])
    labels = torch.cat([torch.ones(train_pos.size(1)), torch.zeros(neg.size(1))]).to(x.device)
    loss = F.binary_cross_entropy_with_logits(logits, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def main():
    ap = argparse.ArgumentParser(description="GCN auto-encoder for link prediction")
    ap.add_argument("--graph", default="data/citations.npz")
    ap.add_argument("--hidden", type=int, default=128)
    ap.add_argument("--dim", type=int, default=64)
    ap.add_argument("--dropout", type=float, default=0.3)
    ap.add_argument("--lr", type=float, default=0.01)
    ap.add_argument("--epochs", type=int, default=300)
    ap.add_argument("--seed", type=int, default=5)
    args = ap.parse_args()

    torch.manual_seed(args.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    x, edges = load_graph(args.graph)
    n = x.size(0)
    x = x / x.sum(dim=1, keepdim=True).clamp(min=1e-12)
    train_pos, val_pos, test_pos = split_edges(edges, 0.05, 0.10)
    all_keys = set((edges[0] * n + edges[1]).tolist())
    train_keys = set((train_pos[0] * n + train_pos[1]).tolist())
    val_neg = sample_negatives(n, val_pos.size(1), all_keys)
    test_neg = sample_negatives(n, test_pos.size(1), all_keys)
    adj = normalised_adjacency(train_pos, n).to(device)
    x, train_pos = x.to(device), train_pos.to(device)

    model = Encoder(x.size(1), args.hidden, args.dim, args.dropout).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    best_auc = 0.0
    for epoch in range(1, args.epochs + 1):
        loss = train_step(model, optimizer, x, adj, train_pos, train_keys)
        if epoch % 5 == 0:
            auc, ap_score = evaluate(model, x, adj, val_pos, val_neg)
            print(f"epoch {epoch:4d} loss {loss:.4f} val AUC {auc:.4f} AP {ap_score:.4f}")
            if auc > best_auc:
                best_auc = auc
                torch.save(model.state_dict(), "linkpred.pt")

    model.load_state_dict(torch.load("linkpred.pt"))
    auc, ap_score = evaluate(model, x, adj, test_pos, test_neg)
    print(f"test AUC {auc:.4f} AP {ap_score:.4f}")


if __name__ == "__main__":
    main()
