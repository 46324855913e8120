"""Implicit-feedback matrix factorisation with BPR, sampled negatives, leave-one-out hit rate."""
import numpy as np
import torch
from torch import nn

torch.set_num_threads(1)
SEED = 4
np.random.seed(SEED)
torch.manual_seed(SEED)

USERS, ITEMS, K_TRUE = 250, 600, 5
EPOCHS, BATCH, DIM, TOP = 22, 256, 16, 10

taste = np.random.randn(USERS, K_TRUE)
style = np.random.randn(ITEMS, K_TRUE)
popular = np.random.permutation(np.linspace(-1.0, 1.6, ITEMS))
log_p = 1.3 * taste @ style.T + popular
p = np.exp(log_p - log_p.max(1, keepdims=True))
p /= p.sum(1, keepdims=True)

# an event log: (user key, item key) as they come from a database
user_keys = np.random.permutation(90000)[:USERS]
item_keys = np.random.permutation(50000)[:ITEMS]
log = []
for u in range(USERS):
    n = np.random.randint(16, 34)
    for i in np.random.choice(ITEMS, size=n, replace=False, p=p[u]):
        log.append((user_keys[u], item_keys[i]))
log = np.array(log)

user_index = {k: j for j, k in enumerate(np.unique(log[:, 0]))}
item_index = {k: j for j, k in enumerate(np.unique(log[:, 1]))}
events = np.array([(user_index[u], item_index[i]) for u, i in log])
n_users, n_items = len(user_index), len(item_index)

train, val, test = [], [], []
for u in range(n_users):
    mine = events[events[:, 0] == u]
    mine = mine[np.random.permutation(len(mine))]
    test.append(mine[0])
    val.append(mine[1])
    train.extend(mine[2:])
train, val, test = np.array(train), np.array(val), np.array(test)

seen = torch.zeros(n_users, n_items, dtype=torch.bool)
seen[train[:, 0], train[:, 1]] = True


def sample_negatives(users):
    neg = torch.randint(0, n_items, (len(users),))
    for _ in range(10):
        clash = seen[users, neg]
        if not clash.any():
            break
        neg[clash] = torch.randint(0, n_items, (int(clash.sum()),))
    return neg


class MF(nn.Module):
    def __init__(self, n_users, n_items, dim):
        super().__init__()
        self.user = nn.Embedding(n_users, dim)
        self.item = nn.Embedding(n_items, dim)
        self.item_bias = nn.Embedding(n_items, 1)
        nn.init.normal_(self.user.weight, std=0.1)
        nn.init.normal_(self.item.weight, std=0.1)
        nn.init.zeros_(self.item_bias.weight)

    def forward(self, u, i):
        return (self.user(u) * self.item(i)).sum(dim=1) + self.item_bias(i).squeeze(1)

    def scores(self, u):
        return self.user(u) @ self.item.weight.T + self.item_bias.weight.T


@torch.no_grad()
def hit_rate(model, pairs):
    model.eval()
    users = torch.tensor(pairs[:, 0])
    target = torch.tensor(pairs[:, 1])
    s = model.scores(users)
    s = s.masked_fill(seen[users], float("-inf"))
    rank = (s > s.gather(1, target[:, None])).sum(1)
    hit = (rank < TOP).float().mean().item()
    mrr = (1.0 / (rank + 1).float()).mean().item()
    return hit, mrr


model = MF(n_users, n_items, DIM)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
L2 = 2e-3
train_u, train_i = torch.tensor(train[:, 0]), torch.tensor(train[:, 1])
print(f"{n_users} users, {n_items} items, {len(train)} events")

for epoch in range(EPOCHS):
    model.train()
    perm = torch.randperm(len(train_u))
    total, correct = 0.0, 0
    for start in range(0, len(perm), BATCH):
        idx = perm[start:start + BATCH]
        u, pos = train_u[idx], train_i[idx]
        neg = sample_negatives(u)
        s_pos, s_neg = model(u, pos), model(u, neg)
        bpr = -nn.functional.logsigmoid(s_pos - s_neg).mean()
        reg = (model.user(u) ** 2 + model.item(pos) ** 2 + model.item(neg) ** 2).sum(1).mean()
        loss = bpr + L2 * reg
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += bpr.item() * len(idx)
        correct += (s_pos > s_neg).sum().item()
    if epoch % 3 == 0 or epoch == EPOCHS - 1:
        hit, mrr = hit_rate(model, val)
        print(f"epoch {epoch:2d} bpr {total / len(perm):.4f} pair accuracy {correct / len(perm):.3f} val hit@{TOP} {hit:.3f} mrr {mrr:.3f}")

hit, mrr = hit_rate(model, test)
count = torch.tensor(np.bincount(train[:, 1], minlength=n_items)).float()
pop = count.expand(n_users, -1).masked_fill(seen, -1.0)
pop_hit = torch.tensor([float((pop[u] > pop[u, i]).sum() < TOP) for u, i in test]).mean().item()
print(f"test hit@{TOP} {hit:.3f} mrr {mrr:.3f} | popularity hit@{TOP} {pop_hit:.3f}")
