# Next-item recommender: a user is the mean of the items in the history, BPR loss, leave-last-out evaluation.
import numpy as np
import torch
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(4)
rng = np.random.default_rng(4)

USERS, ITEMS, DIM = 1000, 600, 24
EPOCHS, BATCH, LR = 10, 512, 0.01


def simulate():
    taste = rng.normal(0, 1, (USERS, 8))
    kind = rng.normal(0, 1, (ITEMS, 8))
    popular = rng.normal(0, 0.7, ITEMS)
    logs = []
    for u in range(USERS):
        n = int(rng.integers(14, 34))
        util = kind @ taste[u] * 0.75 + popular + rng.gumbel(0, 1, ITEMS)
        chosen = np.argsort(-util)[:n]
        rng.shuffle(chosen)
        logs.append(chosen.tolist())
    return logs


logs = simulate()
train_pairs = [(u, i) for u, items in enumerate(logs) for i in items[:-2]]
val_item = torch.tensor([items[-2] for items in logs])
test_item = torch.tensor([items[-1] for items in logs])


def matrix(pairs):
    m = torch.zeros(USERS, ITEMS)
    m[[u for u, _ in pairs], [i for _, i in pairs]] = 1.0
    return m


history = matrix(train_pairs)
everything = matrix([(u, i) for u, items in enumerate(logs) for i in items])
# 99 items the user never touched, fixed for all epochs
candidates = torch.multinomial(1.0 - everything, 99)


class ItemModel(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.source = torch.nn.Parameter(torch.randn(ITEMS, DIM) * 0.1)
        self.target = torch.nn.Parameter(torch.randn(ITEMS, DIM) * 0.1)
        self.bias = torch.nn.Parameter(torch.zeros(ITEMS))

    def profile(self, rows, without=None):
        total = rows @ self.source
        count = rows.sum(1, keepdim=True)
        if without is not None:
            total = total - self.source[without]
            count = count - 1
        return total / count.clamp(min=1)

    def score(self, profile, items):
        return (profile.unsqueeze(1) * self.target[items]).sum(-1) + self.bias[items]


@torch.no_grad()
def evaluate(model, held_out, k=10):
    model.eval()
    items = torch.cat([held_out[:, None], candidates], 1)
    s = model.score(model.profile(history), items)
    rank = (s[:, 1:] > s[:, :1]).sum(1)
    hit = (rank < k).float()
    ndcg = hit / torch.log2(rank.float() + 2)
    return hit.mean().item(), ndcg.mean().item()


model = ItemModel()
optimizer = torch.optim.Adam(model.parameters(), lr=LR, weight_decay=1e-5)
pairs = torch.tensor(train_pairs)
best, best_state = 0.0, None
print(f"{len(pairs)} interactions, random HR@10 would be 0.100")
for epoch in range(EPOCHS):
    model.train()
    perm = torch.randperm(len(pairs))
    total = 0.0
    for b in range(0, len(perm), BATCH):
        batch = pairs[perm[b:b + BATCH]]
        u, pos = batch[:, 0], batch[:, 1]
        neg = torch.multinomial(1.0 - history[u], 4)
        prof = model.profile(history[u], without=pos)
        diff = model.score(prof, pos[:, None]) - model.score(prof, neg)
        loss = F.softplus(-diff).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(batch)
    hr, ndcg = evaluate(model, val_item)
    if hr > best:
        best, best_state = hr, {k: v.clone() for k, v in model.state_dict().items()}
    print(f"epoch {epoch + 1:2d} bpr {total / len(pairs):.4f} val HR@10 {hr:.4f} NDCG@10 {ndcg:.4f}")

model.load_state_dict(best_state)
hr, ndcg = evaluate(model, test_item)
print(f"kept checkpoint: val HR@10 {best:.4f}; test HR@10 {hr:.4f} NDCG@10 {ndcg:.4f}")
