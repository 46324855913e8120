"""A graph network on the whole graph: masks of nodes, a sparse adjacency matrix."""

import torch
import torch.nn.functional as F

torch.manual_seed(0)


class Data:
    def __init__(self, n=120):
        self.y = torch.randint(3, (n,))
        self.x = F.one_hot(self.y, 3).float() + torch.randn(n, 3)
        self.x = torch.cat([self.x, torch.randn(n, 5)], 1)
        linked = (self.y[:, None] == self.y[None]) & (torch.rand(n, n) < 0.1)
        edge = (linked.float() + torch.eye(n)).to_sparse().coalesce()
        degree = torch.sparse.sum(edge, 1).to_dense()
        values = edge.values() / degree[edge.indices()[0]]
        self.adj_t = torch.sparse_coo_tensor(edge.indices(), values, (n, n)).coalesce()
        order = torch.randperm(n)
        self.train_mask, self.val_mask = torch.zeros(n).bool(), torch.zeros(n).bool()
        self.train_mask[order[:60]], self.val_mask[order[60:]] = True, True


class GCNConv(torch.nn.Module):
    def __init__(self, before, after):
        super().__init__()
        self.lin = torch.nn.Linear(before, after)

    def forward(self, x, adj_t):
        return torch.sparse.mm(adj_t, self.lin(x))


class GCN(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = GCNConv(8, 16), GCNConv(16, 3)

    def forward(self, x, adj_t):
        x = F.dropout(x, p=0.5, training=self.training)
        x = self.conv1(x, adj_t).relu()
        return self.conv2(x, adj_t)


data = Data()
model = GCN()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)


def train():
    model.train()
    optimizer.zero_grad()
    out = model(data.x, data.adj_t)
    loss = F.cross_entropy(out[data.train_mask], data.y[data.train_mask])
    loss.backward()
    optimizer.step()
    return float(loss.detach())


@torch.no_grad()
def test():
    model.eval()
    pred = model(data.x, data.adj_t).argmax(dim=-1)
    return [
        int((pred[m] == data.y[m]).sum()) / int(m.sum()) for m in (data.train_mask, data.val_mask)
    ]


for epoch in range(1, 81):
    loss = train()
    train_acc, val_acc = test()
    if epoch % 20 == 0:
        print(f"Epoch: {epoch:03d}, Loss: {loss:.4f}, Train: {train_acc:.4f}, Val: {val_acc:.4f}")
