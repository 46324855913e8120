import random
from dataclasses import dataclass

import torch
import torch.nn as nn

torch.set_num_threads(1)
random.seed(3)
torch.manual_seed(3)


@dataclass
class Graph:
    x: torch.Tensor          # node features (n, 6)
    edges: torch.Tensor      # (2, e) both directions
    y: int


def motif(kind):
    if kind == 0:                                   # hexagon
        return 6, [(i, (i + 1) % 6) for i in range(6)]
    if kind == 1:                                   # two triangles joined by one edge
        return 6, [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3), (2, 3)]
    return 6, [(0, i) for i in range(1, 6)] + [(1, 2)]   # wheel-like star


def molecule(rng):
    """random tree + motif; atoms have types and the class is set by the motif and by the atom bonded to it"""
    kind = rng.randrange(3)
    n_tree = rng.randint(6, 12)
    edges = [(i, rng.randrange(i)) for i in range(1, n_tree)]
    m, medges = motif(kind)
    edges += [(a + n_tree, b + n_tree) for a, b in medges]
    anchor = rng.randrange(n_tree)
    edges.append((anchor, n_tree + rng.randrange(m)))
    n = n_tree + m
    types = [rng.randrange(4) for _ in range(n)]
    for i in range(n_tree, n):
        types[i] = 4 if i == n_tree or rng.random() < 0.6 else rng.randrange(4)
    y = kind * 2 + (types[anchor] >= 2)
    if rng.random() < 0.08:
        y = rng.randrange(6)
    x = torch.zeros(n, 6)
    x[torch.arange(n), torch.tensor(types)] = 1.0
    e = torch.tensor(edges + [(b, a) for a, b in edges]).t()
    x[:, 5] = torch.bincount(e[0], minlength=n).float() / 4
    return Graph(x, e, y)


def collate(graphs):
    xs, es, owner, ys = [], [], [], []
    offset = 0
    for gi, g in enumerate(graphs):
        xs.append(g.x)
        es.append(g.edges + offset)
        owner.append(torch.full((len(g.x),), gi))
        ys.append(g.y)
        offset += len(g.x)
    return torch.cat(xs), torch.cat(es, 1), torch.cat(owner), torch.tensor(ys)


class GINLayer(nn.Module):
    def __init__(self, din, dout):
        super().__init__()
        self.eps = nn.Parameter(torch.zeros(1))
        self.mlp = nn.Sequential(nn.Linear(din, dout), nn.BatchNorm1d(dout), nn.ReLU(), nn.Linear(dout, dout))

    def forward(self, h, edges):
        src, dst = edges
        agg = torch.zeros_like(h).index_add_(0, dst, h[src])
        return torch.relu(self.mlp((1 + self.eps) * h + agg))


class GIN(nn.Module):
    def __init__(self, din=6, hid=48, n_layers=4, n_classes=6):
        super().__init__()
        self.embed = nn.Linear(din, hid)
        self.layers = nn.ModuleList([GINLayer(hid, hid) for _ in range(n_layers)])
        self.drop = nn.Dropout(0.2)
        self.head = nn.Linear(hid * (n_layers + 1), n_classes)

    def forward(self, x, edges, owner, n_graphs):
        h = self.embed(x)
        outs = [h]
        for layer in self.layers:
            h = layer(h, edges)
            outs.append(h)
        z = torch.cat(outs, 1)
        pooled = torch.zeros(n_graphs, z.size(1)).index_add_(0, owner, z)
        sizes = torch.bincount(owner, minlength=n_graphs).unsqueeze(1)
        return self.head(self.drop(pooled / sizes.sqrt()))


def batches(graphs, size, shuffle=False):
    order = list(range(len(graphs)))
    if shuffle:
        random.shuffle(order)
    for i in range(0, len(order), size):
        yield collate([graphs[j] for j in order[i:i + size]])


@torch.no_grad()
def score(net, graphs, loss_fn):
    net.eval()
    hit, total, loss = 0, 0, 0.0
    for x, e, owner, y in batches(graphs, 128):
        out = net(x, e, owner, len(y))
        loss += loss_fn(out, y).item() * len(y)
        hit += (out.argmax(1) == y).sum().item()
        total += len(y)
    return loss / total, hit / total


rng = random.Random(2024)
pool = [molecule(rng) for _ in range(2000)]
train_graphs, valid_graphs, test_graphs = pool[:1400], pool[1400:1700], pool[1700:]
print("graphs:", len(train_graphs), len(valid_graphs), len(test_graphs))

net = GIN()
loss_fn = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(net.parameters(), lr=4e-3, weight_decay=1e-5)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode="min", factor=0.4, patience=2)
best_loss, best_state = float("inf"), None

for epoch in range(1, 21):
    net.train()
    total, seen = 0.0, 0
    for x, e, owner, y in batches(train_graphs, 64, shuffle=True):
        optimizer.zero_grad()
        loss = loss_fn(net(x, e, owner, len(y)), y)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(y)
        seen += len(y)
    vloss, vacc = score(net, valid_graphs, loss_fn)
    scheduler.step(vloss)
    if vloss < best_loss:
        best_loss = vloss
        best_state = {k: v.clone() for k, v in net.state_dict().items()}
    print(f"{epoch:3d} train {total / seen:.4f} valid {vloss:.4f} acc {vacc:.3f} lr {optimizer.param_groups[0]['lr']:.2e}")

net.load_state_dict(best_state)
tloss, tacc = score(net, test_graphs, loss_fn)
print(f"test loss {tloss:.4f} accuracy {tacc:.3f}")
