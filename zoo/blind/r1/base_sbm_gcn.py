import torch
import torch.nn as nn
import torch.nn.functional as F


def stochastic_block_graph(n=400, k=4, p_in=0.06, p_out=0.008, feat=16, seed=2):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, k, (n,), generator=g)
    prob = torch.where(y[:, None] == y[None], p_in, p_out)
    a = (torch.rand(n, n, generator=g) < prob).float().triu(1)
    a = a + a.t()
    # a few hubs
    hubs = torch.randperm(n, generator=g)[:6]
    for h in hubs.tolist():
        same = (y == y[h]).float() * (torch.rand(n, generator=g) < 0.6).float()
        a[h] = torch.maximum(a[h], same)
        a[:, h] = a[h]
    a.fill_diagonal_(0)
    x = torch.randn(n, feat, generator=g) * 1.5 + torch.randn(k, feat, generator=g)[y] * 0.7
    train_mask = torch.zeros(n, dtype=torch.bool)
    train_mask[torch.randperm(n, generator=g)[:80]] = True
    return x, a, y, train_mask


class GCNLayer(nn.Module):
    def __init__(self, fin, fout):
        super().__init__()
        self.lin = nn.Linear(fin, fout)

    def forward(self, x, adj):
        return adj @ self.lin(x)


class GCN(nn.Module):
    def __init__(self, fin, hidden, classes, depth=2, p=0.5):
        super().__init__()
        sizes = [fin] + [hidden] * (depth - 1) + [classes]
        self.convs = nn.ModuleList(GCNLayer(a, b) for a, b in zip(sizes[:-1], sizes[1:]))
        self.p = p

    def forward(self, x, adj):
        for conv in self.convs[:-1]:
            x = F.relu(conv(x, adj))
            x = F.dropout(x, p=self.p, training=self.training)
        return self.convs[-1](x, adj)


def normalise(a):
    a = a + torch.eye(len(a))
    d = a.sum(1).pow(-0.5)
    return d[:, None] * a * d[None, :]


torch.manual_seed(2)
x, a, y, train_mask = stochastic_block_graph()
adj = normalise(a)
net = GCN(x.size(1), 32, 4)
opt = torch.optim.Adam(net.parameters(), lr=0.01, weight_decay=5e-4)
for epoch in range(121):
    net.train()
    out = net(x, adj)
    loss = F.cross_entropy(out[train_mask], y[train_mask])
    opt.zero_grad()
    loss.backward()
    opt.step()
    if epoch % 20 == 0:
        net.eval()
        with torch.no_grad():
            out = net(x, adj)
            vl = F.cross_entropy(out[~train_mask], y[~train_mask]).item()
            acc = (out.argmax(1) == y)[~train_mask].float().mean().item()
        print("epoch", epoch, "train loss %.4f  held-out loss %.4f  held-out acc %.3f" % (loss.item(), vl, acc))
