"""Batches by length and by token budget: sizes differ a lot from batch to batch, and each batch has one length."""
import random
from collections import defaultdict

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Sampler


class Notes(Dataset):
    def __init__(self, n, seed):
        r = random.Random(seed)
        self.rows = []
        for _ in range(n):
            L = r.choice([4, 8, 16, 24])
            y = r.randrange(2)
            toks = [r.randrange(30, 60) if r.random() < 0.6 else r.randrange(15) + 15 * y for _ in range(L)]
            self.rows.append((torch.tensor(toks), y))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


class TokenBudget(Sampler):
    def __init__(self, data, budget, seed):
        self.data, self.budget, self.rng = data, budget, random.Random(seed)

    def __iter__(self):
        by_len = defaultdict(list)
        for i, (t, _) in enumerate(self.data.rows):
            by_len[len(t)].append(i)
        batches = []
        for L, idx in by_len.items():
            self.rng.shuffle(idx)
            k = self.budget // L
            batches += [idx[a:a + k] for a in range(0, len(idx), k)]
        self.rng.shuffle(batches)
        return iter(batches)


class Bag(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.EmbeddingBag(60, 16, mode="mean")
        self.out = nn.Linear(16, 2)

    def forward(self, ids):
        return self.out(self.emb(ids))


torch.manual_seed(0)
train_set, val_set = Notes(1600, 1), Notes(300, 2)
train_dl = DataLoader(train_set, batch_sampler=TokenBudget(train_set, 240, seed=0))
val_dl = DataLoader(val_set, batch_sampler=TokenBudget(val_set, 480, seed=1))
model = Bag()
opt = torch.optim.Adam(model.parameters(), lr=2e-2)
for epoch in range(5):
    model.train()
    total = n = 0
    for ids, y in train_dl:
        loss = nn.functional.cross_entropy(model(ids), y, reduction="sum")
        opt.zero_grad()
        (loss / len(y)).backward()
        opt.step()
        total += loss.item()
        n += len(y)
    model.eval()
    ok = vl = m = 0
    with torch.no_grad():
        for ids, y in val_dl:
            out = model(ids)
            vl += nn.functional.cross_entropy(out, y, reduction="sum").item()
            ok += (out.argmax(1) == y).sum().item()
            m += len(y)
    print(f"epoch {epoch} train {total / n:.3f} val {vl / m:.3f} acc {ok / m:.3f}")
