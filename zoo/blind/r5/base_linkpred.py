# Link prediction: GCN encoder + small MLP decoder, one fresh set of negatives per step.
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.metrics import roc_auc_score

torch.manual_seed(5)
torch.set_num_threads(1)
rng = np.random.default_rng(5)

# ---- graph: people in 10 groups, sorted by group, linked by closeness in a hidden space
N, GROUPS, DIM = 600, 10, 6
group = np.sort(rng.integers(0, GROUPS, N))
centre = rng.normal(0, 1.0, (GROUPS, DIM))
pos = centre[group] + rng.normal(0, 0.55, (N, DIM))
d2 = ((pos[:, None] - pos[None]) ** 2).sum(-1)
prob = 0.3 * np.exp(-d2 / 2.0)
upper = np.triu(rng.uniform(size=(N, N)) < prob, 1)
edges = torch.tensor(np.argwhere(upper))
edges = edges[torch.randperm(len(edges))]
feats = torch.tensor(pos @ rng.normal(0, 0.6, (DIM, 16)) + rng.normal(0, 2.5, (N, 16)), dtype=torch.float32)

n_test = len(edges) // 5
test_pos, train_edges = edges[:n_test], edges[n_test:]

known = torch.zeros(N, N, dtype=torch.bool)
known[edges[:, 0], edges[:, 1]] = True
known = known | known.T | torch.eye(N, dtype=torch.bool)
cand = torch.randint(0, N, (6 * n_test, 2))
test_neg = cand[~known[cand[:, 0], cand[:, 1]]][:n_test]


def propagation(e):
    a = torch.eye(N)
    a[e[:, 0], e[:, 1]] = 1.0
    a[e[:, 1], e[:, 0]] = 1.0
    s = a.sum(1).rsqrt()
    return s[:, None] * a * s[None, :]


class Encoder(nn.Module):
    def __init__(self, fin, hid, out):
        super().__init__()
        self.node = nn.Embedding(N, 8)
        nn.init.normal_(self.node.weight, std=0.3)
        self.w1 = nn.Linear(fin + 8, hid)
        self.w2 = nn.Linear(hid, out)

    def forward(self, x, a):
        x = torch.cat([x, self.node.weight], 1)
        h = F.relu(a @ self.w1(x))
        h = F.dropout(h, 0.2, self.training)
        return a @ self.w2(h)


class Decoder(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(d, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, z, pairs):
        return self.net(z[pairs[:, 0]] * z[pairs[:, 1]]).squeeze(-1)


adj = propagation(train_edges)
encoder, decoder = Encoder(16, 48, 32), Decoder(32)
opt = torch.optim.Adam(list(encoder.parameters()) + list(decoder.parameters()), lr=3e-3, weight_decay=1e-4)


@torch.no_grad()
def evaluate():
    encoder.eval(), decoder.eval()
    z = encoder(feats, adj)
    p, q = decoder(z, test_pos), decoder(z, test_neg)
    auc = roc_auc_score(np.r_[np.ones(len(p)), np.zeros(len(q))], torch.cat([p, q]).numpy())
    thr = q.sort(descending=True).values[50]
    hits = (p > thr).float().mean().item()
    encoder.train(), decoder.train()
    return auc, hits


B, STEPS = 128, 350
running = 0.0
print(f"{N} nodes, {len(train_edges)} training edges, {n_test} test edges")
print("step    0  test AUC %.4f  hits@50 %.4f" % evaluate())
for step in range(1, STEPS + 1):
    pos_pairs = train_edges[torch.randint(0, len(train_edges), (B,))]
    neg_dst = torch.randint(0, N, (B,))
    neg_pairs = torch.stack([pos_pairs[:, 0], neg_dst], 1)
    z = encoder(feats, adj)
    pos_logit = decoder(z, pos_pairs)
    neg_logit = decoder(z, neg_pairs)
    loss = F.softplus(-pos_logit).mean() + F.softplus(neg_logit).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    running += loss.item()
    if step % 50 == 0:
        auc, hits = evaluate()
        print(f"step {step:4d}  loss {running / 50:.4f}  test AUC {auc:.4f}  hits@50 {hits:.4f}")
        running = 0.0
print(f"final test AUC {auc:.4f}  hits@50 {hits:.4f}")
