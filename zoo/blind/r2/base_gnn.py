import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.metrics import f1_score


class Graph:
    """Planted-partition citation-like graph with noisy bag-of-words features."""

    def __init__(self, n=400, classes=5, words=120, seed=0):
        g = torch.Generator().manual_seed(seed)
        y = torch.arange(n) % classes
        same = y[:, None] == y[None, :]
        prob = torch.where(same, 0.05, 0.004)
        upper = torch.triu((torch.rand(n, n, generator=g) < prob).float(), diagonal=1)
        adj = upper + upper.T
        lonely = torch.randperm(n, generator=g)[:8]
        adj[lonely] = 0
        adj[:, lonely] = 0
        topic = torch.rand(classes, words, generator=g) < 0.12
        rate = torch.where(topic[y], 0.12, 0.05)
        feats = (torch.rand(n, words, generator=g) < rate).float()

        perm = torch.randperm(n, generator=g)
        feats, y = feats[perm], y[perm]
        adj = adj[perm][:, perm]

        self.x = feats / feats.sum(1, keepdim=True).clamp(min=1)
        self.y = y
        self.adj = self.normalise(adj)
        order = torch.randperm(n, generator=g)
        self.train_idx, self.val_idx, self.test_idx = order[:100], order[100:200], order[200:]
        # labels as handed out: only the training nodes are annotated
        self.labels = torch.zeros(n, dtype=torch.long)
        self.labels[self.train_idx] = y[self.train_idx]

    @staticmethod
    def normalise(adj):
        adj = adj + torch.eye(adj.size(0))
        d = adj.sum(1).pow(-0.5)
        return d[:, None] * adj * d[None, :]


class GCN(nn.Module):
    def __init__(self, d_in, d_hid, d_out, p=0.6):
        super().__init__()
        self.lin1 = nn.Linear(d_in, d_hid)
        self.lin2 = nn.Linear(d_hid, d_out)
        self.p = p

    def drop(self, h):
        return F.dropout(h, self.p, training=self.training)

    def forward(self, x, adj):
        h = F.relu(adj @ self.lin1(self.drop(x)))
        return adj @ self.lin2(self.drop(h))


def main():
    torch.manual_seed(11)
    graph = Graph()
    net = GCN(graph.x.size(1), 32, 5)
    optim = torch.optim.Adam(net.parameters(), lr=0.02, weight_decay=5e-4)

    for epoch in range(1, 121):
        net.train()
        optim.zero_grad()
        out = net(graph.x, graph.adj)
        loss = F.cross_entropy(out[graph.train_idx], graph.labels[graph.train_idx])
        loss.backward()
        optim.step()

        if epoch % 20 == 0:
            net.eval()
            with torch.no_grad():
                pred = net(graph.x, graph.adj).argmax(1)
            tr = (pred == graph.y)[graph.train_idx].float().mean()
            va = (pred == graph.y)[graph.val_idx].float().mean()
            print(f"[{epoch:03d}] loss={loss.item():.4f} train_acc={tr:.3f} val_acc={va:.3f}")

    net.eval()
    with torch.no_grad():
        pred = net(graph.x, graph.adj).argmax(1)[graph.test_idx]
    gold = graph.y[graph.test_idx]
    print(f"test acc {(pred == gold).float().mean():.3f}  macro-F1 {f1_score(gold, pred, average='macro'):.3f}")


if __name__ == "__main__":
    main()
