import torch
import torch.nn as nn
import torch.nn.functional as F


def sbm(n=120, classes=3, p_in=0.2, p_out=0.03):
    y = torch.arange(n) % classes
    prob = torch.where(y[:, None] == y[None, :], p_in, p_out)
    upper = torch.triu(torch.rand(n, n) < prob, diagonal=1)
    x = torch.randn(n, 10) + 0.4 * F.one_hot(y, 10)
    return x, y, upper.float()


def sparsify(upper, rate):
    keep = (torch.rand_like(upper) >= rate).float()
    kept = upper * keep
    return kept + kept.T


def normalise(adj):
    deg = adj.sum(1)
    inv = deg.pow(-0.5)
    return inv[:, None] * adj * inv[None, :]


class GraphConv(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.own = nn.Linear(i, o)
        self.nbr = nn.Linear(i, o, bias=False)

    def forward(self, x, a):
        return self.own(x) + a @ self.nbr(x)


class GCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1 = GraphConv(10, 32)
        self.c2 = GraphConv(32, 3)

    def forward(self, x, adj):
        a = normalise(adj)
        return self.c2(F.relu(self.c1(x, a)), a)


torch.manual_seed(12)
x, y, upper = sbm()
labelled = torch.rand(len(y)) < 0.5
net = GCN()
optimizer = torch.optim.AdamW(net.parameters(), lr=5e-3, weight_decay=1e-3)
for epoch in range(300):
    rate = min(0.8, epoch / 300)
    out = net(x, sparsify(upper, rate))
    loss = F.cross_entropy(out[labelled], y[labelled])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if epoch % 30 == 0:
        with torch.no_grad():
            pred = net(x, upper + upper.T).argmax(1)
        acc = (pred == y)[~labelled].float().mean()
        print(f"epoch {epoch} drop {rate:.2f} loss {loss.item():.4f} test acc {acc:.3f}")
