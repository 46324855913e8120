"""Implicit-feedback recommender: matrix factorisation with biases, BPR loss, leave-two-out evaluation."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(11)
rng = np.random.default_rng(11)

N_USERS, N_ITEMS, DIM_TRUE = 700, 400, 6


def simulate_log():
    """rows (user key, item key, time); keys are strings as in a raw log"""
    u = rng.normal(0, 1, (N_USERS, DIM_TRUE))
    v = rng.normal(0, 1, (N_ITEMS, DIM_TRUE))
    pop = rng.normal(0, 0.8, N_ITEMS)
    score = 1.1 * u @ v.T + pop + rng.gumbel(0, 1.0, (N_USERS, N_ITEMS))
    rows = []
    for i in range(N_USERS):
        k = int(rng.integers(14, 36))
        chosen = np.argsort(-score[i])[:k]
        rng.shuffle(chosen)
        rows += [(f"u{i}", f"sku-{int(j)}", t) for t, j in enumerate(chosen)]
    return rows


class IdMap(dict):
    def fit(self, keys):
        for k in keys:
            if k not in self:
                self[k] = len(self)
        return self

    def transform(self, keys):
        return np.array([self[k] for k in keys])


def leave_last_out(rows, k):
    by_user = {}
    for user, item, t in rows:
        by_user.setdefault(user, []).append((t, item))
    past, last = [], []
    for user, lst in by_user.items():
        lst.sort()
        past += [(user, item, t) for t, item in lst[:-k]]
        last += [(user, item, t) for t, item in lst[-k:]]
    return past, last


class BPRMF(nn.Module):
    def __init__(self, n_users, n_items, dim=16):
        super().__init__()
        self.user = nn.Embedding(n_users, dim)
        self.item = nn.Embedding(n_items, dim)
        self.bias = nn.Embedding(n_items, 1)
        nn.init.normal_(self.user.weight, std=0.1)
        nn.init.normal_(self.item.weight, std=0.1)
        nn.init.zeros_(self.bias.weight)

    def forward(self, u, i):
        return (self.user(u) * self.item(i)).sum(-1) + self.bias(i).squeeze(-1)

    def all_scores(self, u):
        return self.user(u) @ self.item.weight.t() + self.bias.weight.squeeze(-1)


def sample_negatives(u, seen, n_items):
    neg = rng.integers(0, n_items, len(u))
    bad = seen[u, neg]
    while bad.any():
        neg[bad] = rng.integers(0, n_items, int(bad.sum()))
        bad = seen[u, neg]
    return neg


@torch.no_grad()
def rank_metrics(model, u, i, hide, k=10):
    scores = model.all_scores(torch.from_numpy(u)).numpy().copy()
    target = scores[np.arange(len(u)), i]
    block = hide[u].copy()
    block[np.arange(len(u)), i] = False
    scores[block] = -np.inf
    rank = (scores > target[:, None]).sum(1)
    hit = rank < k
    ndcg = np.where(hit, 1 / np.log2(rank + 2), 0)
    return hit.mean(), ndcg.mean()


log = simulate_log()
train_rows, heldout = leave_last_out(log, k=2)
valid_rows, test_rows = leave_last_out(heldout, k=1)

users = IdMap().fit([r[0] for r in log])
items = IdMap().fit([r[1] for r in log])


def to_arrays(rows, users, items):
    return users.transform([r[0] for r in rows]), items.transform([r[1] for r in rows])


tr_u, tr_i = to_arrays(train_rows, users, items)
va_u, va_i = to_arrays(valid_rows, users, items)
te_u, te_i = to_arrays(test_rows, users, items)
seen = np.zeros((len(users), len(items)), dtype=bool)
seen[tr_u, tr_i] = True
print(f"{len(users)} users, {len(items)} items, {len(tr_u)} train interactions")

model = BPRMF(len(users), len(items))
opt = torch.optim.Adam(model.parameters(), lr=0.01)
batch, reg = 256, 3e-3

for epoch in range(18):
    perm = rng.permutation(len(tr_u))
    total, right, n = 0.0, 0, 0
    for s in range(0, len(perm), batch):
        idx = perm[s:s + batch]
        neg_np = sample_negatives(tr_u[idx], seen, len(items))
        u, i, j = torch.from_numpy(tr_u[idx]), torch.from_numpy(tr_i[idx]), torch.from_numpy(neg_np)
        pos, neg = model(u, i), model(u, j)
        l2 = (model.user(u) ** 2 + model.item(i) ** 2 + model.item(j) ** 2).sum(-1).mean()
        loss = -F.logsigmoid(pos - neg).mean() + reg * l2
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item() * len(idx)
        right += (pos > neg).float().mean().item() * len(idx)
        n += len(idx)
    if epoch % 3 == 2:
        hr, ndcg = rank_metrics(model, va_u, va_i, seen)
        print(f"epoch {epoch + 1:2d}: bpr {total / n:.4f} pair acc {right / n:.3f} | val HR@10 {hr:.3f} NDCG@10 {ndcg:.3f}")

seen_all = seen.copy()
seen_all[va_u, va_i] = True
hr, ndcg = rank_metrics(model, te_u, te_i, seen_all)
pop_rank = np.bincount(tr_i, minlength=len(items)).argsort()[::-1][:10]
print(f"popularity baseline HR@10 {np.isin(te_i, pop_rank).mean():.3f}")
print(f"test HR@10 {hr:.3f} NDCG@10 {ndcg:.3f}")
