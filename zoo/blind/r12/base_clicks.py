# %% [markdown]
# Two-tower retrieval on click logs. In-batch negatives with popularity correction.

# %%
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 3
torch.manual_seed(SEED)
rng = np.random.default_rng(SEED)

N_USERS, N_ITEMS, N_CATS = 800, 400, 16
HIST = 10

# %% simulate the log
true_item = rng.normal(0, 1, (N_ITEMS, 6))
cat_center = rng.normal(0, 1.5, (N_CATS, 6))
item_cat = rng.integers(0, N_CATS, N_ITEMS)
true_item = true_item * 0.6 + cat_center[item_cat]
true_user = rng.normal(0, 1, (N_USERS, 6))
popularity = rng.normal(0, 1.0, N_ITEMS)
age = np.clip((true_user[:, 0] + rng.normal(0, 0.3, N_USERS)) * 10 + 40, 18, 80)

logits = 0.8 * true_user @ true_item.T + popularity[None]
gumbel = rng.gumbel(size=logits.shape)
ranked = np.argsort(-(logits + gumbel), axis=1)
clicks = [ranked[u, : rng.integers(22, 32)] for u in range(N_USERS)]
for c in clicks:
    rng.shuffle(c)

# leave the last two clicks of each user out
train_clicks = [c[:-2] for c in clicks]
val_clicks = [c[-2:] for c in clicks]
pairs = np.array([(u, i) for u, c in enumerate(train_clicks) for i in c])
counts = np.bincount(pairs[:, 1], minlength=N_ITEMS) + 1.0
log_q = torch.tensor(np.log(counts / counts.sum()), dtype=torch.float32)
print("train pairs", len(pairs), "val pairs", 2 * N_USERS)

pairs = torch.tensor(pairs)
item_cat_t = torch.tensor(item_cat)
tenure = np.round(age * 90 + rng.normal(0, 200, N_USERS))          # days since sign-up
tenure = (tenure - tenure.mean()) / tenure.std()
tenure_t = torch.tensor(tenure, dtype=torch.float32)
seen = torch.zeros(N_USERS, N_ITEMS, dtype=torch.bool)
for u, c in enumerate(train_clicks):
    seen[u, torch.tensor(c)] = True


def sample_history(users, exclude=None):
    """HIST random earlier clicks of each user, never the excluded item"""
    w = seen[users].float()
    if exclude is not None:
        w[torch.arange(len(users)), exclude] = 0.0
    return torch.multinomial(w, HIST)


# %% model
class TwoTower(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.item_emb = nn.Embedding(N_ITEMS, dim)
        self.cat_emb = nn.Embedding(N_CATS, dim)
        nn.init.normal_(self.item_emb.weight, std=0.1)
        nn.init.normal_(self.cat_emb.weight, std=0.1)
        self.item_mlp = nn.Sequential(nn.Linear(2 * dim, 64), nn.ReLU(), nn.Linear(64, dim))
        self.user_mlp = nn.Sequential(nn.Linear(dim + 1, 64), nn.ReLU(), nn.Linear(64, dim))
        self.temperature = 0.1

    def items(self, ids):
        z = torch.cat([self.item_emb(ids), self.cat_emb(item_cat_t[ids])], dim=-1)
        return F.normalize(self.item_mlp(z), dim=-1)

    def users(self, users, hist):
        h = self.item_emb(hist) + self.cat_emb(item_cat_t[hist])
        z = torch.cat([h.mean(1), tenure_t[users].unsqueeze(1)], dim=-1)
        return F.normalize(self.user_mlp(z), dim=-1)


model = TwoTower()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)


# %% ranking metrics over the whole catalogue, train clicks removed
@torch.no_grad()
def evaluate(k=20):
    model.eval()
    g = torch.arange(N_USERS)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        u = model.users(g, sample_history(g))
    v = model.items(torch.arange(N_ITEMS))
    s = (u @ v.T / model.temperature).masked_fill(seen, -1e9)
    rel = torch.zeros(N_USERS, N_ITEMS)
    for i, c in enumerate(val_clicks):
        rel[i, torch.tensor(c)] = 1.0
    top = s.topk(k, dim=1).indices
    hit = rel.gather(1, top)
    recall = (hit.sum(1) / 2).mean().item()
    disc = 1.0 / torch.log2(torch.arange(k) + 2.0)
    ndcg = ((hit * disc).sum(1) / disc[:2].sum()).mean().item()
    order = s.argsort(dim=1, descending=True)
    first = rel.gather(1, order).argmax(1) + 1
    mrr = (1.0 / first).mean().item()
    return recall, ndcg, mrr


print("random recall@20 would be about %.3f" % (20 / (N_ITEMS - 25)))

# %% train
BATCH = 256
EPOCHS = 12
for epoch in range(EPOCHS):
    model.train()
    perm = torch.randperm(len(pairs))
    losses = []
    for b in range(0, len(perm) - BATCH + 1, BATCH):
        batch = pairs[perm[b:b + BATCH]]
        uid, pos = batch[:, 0], batch[:, 1]
        hist = sample_history(uid, exclude=pos)
        uv = model.users(uid, hist)
        iv = model.items(pos)
        sim = uv @ iv.T / model.temperature
        sim = sim - log_q[pos].unsqueeze(0)
        # other positives of the same user are no negatives
        clash = seen[uid][:, pos] & ~torch.eye(len(pos), dtype=torch.bool)
        sim = sim.masked_fill(clash, -1e9)
        loss = F.cross_entropy(sim, torch.arange(len(pos)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    recall, ndcg, mrr = evaluate()
    print(f"epoch {epoch + 1:2d}  loss {np.mean(losses):.4f}  recall@20 {recall:.4f}  ndcg@20 {ndcg:.4f}  mrr {mrr:.4f}")

print(f"final recall@20 {recall:.4f} ndcg@20 {ndcg:.4f}")
