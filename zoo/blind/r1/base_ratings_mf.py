import numpy as np
import torch
import torch.nn as nn

rng = np.random.default_rng(12)
torch.manual_seed(12)
n_users, n_items, rank = 150, 100, 4

# ratings file: (user id, item id, stars); ids are arbitrary shop numbers
U, V = rng.normal(0, 0.7, (n_users, rank)), rng.normal(0, 0.7, (n_items, rank))
bu, bi = rng.normal(0, 0.3, n_users), rng.normal(0, 0.5, n_items)
pairs = rng.permutation(n_users * n_items)[:6500]
u, i = pairs // n_items, pairs % n_items
stars = np.clip(3.4 + bu[u] + bi[i] + (U[u] * V[i]).sum(1) + 0.25 * rng.normal(size=len(u)), 0.5, 5.5)
user_no = rng.permutation(9000)[:n_users][u]
item_no = rng.permutation(5000)[:n_items][i]


def index_of(numbers):
    return {n: k for k, n in enumerate(dict.fromkeys(numbers.tolist()))}


split = 5500
user_index, item_index = index_of(user_no), index_of(item_no)


def as_tensors(lo, hi):
    uu = torch.tensor([user_index[n] for n in user_no[lo:hi]])
    ii = torch.tensor([item_index[n] for n in item_no[lo:hi]])
    return uu, ii, torch.tensor(stars[lo:hi], dtype=torch.float32)


train, valid = as_tensors(0, split), as_tensors(split, len(stars))


class MF(nn.Module):
    def __init__(self, nu, ni, k=6):
        super().__init__()
        self.p = nn.Embedding(nu, k)
        self.q = nn.Embedding(ni, k)
        self.bu = nn.Embedding(nu, 1)
        self.bi = nn.Embedding(ni, 1)
        self.mu = nn.Parameter(torch.tensor(3.0))
        nn.init.normal_(self.p.weight, std=0.1)
        nn.init.normal_(self.q.weight, std=0.1)
        nn.init.zeros_(self.bu.weight)
        nn.init.zeros_(self.bi.weight)

    def forward(self, u, i):
        dot = (self.p(u) * self.q(i)).sum(-1)
        return self.mu + self.bu(u).squeeze(-1) + self.bi(i).squeeze(-1) + dot


model = MF(n_users, n_items)
opt = torch.optim.Adam(model.parameters(), lr=0.02, weight_decay=2e-5)
for epoch in range(14):
    perm = torch.randperm(split)
    se = 0.0
    for b in perm.split(256):
        pred = model(train[0][b], train[1][b])
        loss = ((pred - train[2][b]) ** 2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        se += loss.item() * len(b)
    with torch.no_grad():
        v = ((model(valid[0], valid[1]) - valid[2]) ** 2).mean().sqrt().item()
    print(f"epoch {epoch:2d} train rmse {(se / split) ** 0.5:.3f} valid rmse {v:.3f}")
