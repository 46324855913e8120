"""Star ratings from a log of text lines, streamed, two towers plus biases."""
import copy
import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

random.seed(12)
torch.manual_seed(12)
USERS, ITEMS = 300, 200
DECAY = 0.98


def write_log():
    g = np.random.default_rng(12)
    pu, qi = g.normal(0, 0.55, (USERS, 4)), g.normal(0, 0.55, (ITEMS, 4))
    bu, bi = g.normal(0, 0.35, USERS), g.normal(0, 0.4, ITEMS)
    pairs = g.choice(USERS * ITEMS, 14000, replace=False)
    lines = []
    for k in pairs:
        u, i = int(k // ITEMS), int(k % ITEMS)
        r = 3.4 + bu[u] + bi[i] + pu[u] @ qi[i] + g.normal(0, 0.55)
        r = min(5.0, max(0.5, round(r * 2) / 2))
        text = f"{u}\t{i}\t{i % 9}\t{r}"
        if g.random() < 0.003:
            text = f"{u}\t{i}\t?\t"
        lines += [text] * int(g.choice([1, 1, 2, 3]))
    g.shuffle(lines)
    return [str(s) for s in lines]


def parse(line):
    u, i, genre, r = line.split("\t")
    return int(u), int(i), int(genre), float(r)


class Log(IterableDataset):
    def __init__(self, lines, buffer=0):
        self.lines, self.buffer = lines, buffer

    def __iter__(self):
        held = []
        for line in self.lines:
            try:
                row = parse(line)
            except ValueError:
                continue
            if not self.buffer:
                yield row
                continue
            held.append(row)
            if len(held) >= self.buffer:
                yield held.pop(random.randrange(len(held)))
        random.shuffle(held)
        yield from held


class Towers(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.u, self.i, self.g = nn.Embedding(USERS, dim), nn.Embedding(ITEMS, dim), nn.Embedding(9, dim)
        self.bu, self.bi = nn.Embedding(USERS, 1), nn.Embedding(ITEMS, 1)
        self.base = nn.Parameter(torch.zeros(1))
        for e in (self.u, self.i, self.g):
            nn.init.normal_(e.weight, std=0.1)
        nn.init.zeros_(self.bu.weight)
        nn.init.zeros_(self.bi.weight)

    def forward(self, u, i, genre):
        cross = (self.u(u) * (self.i(i) + self.g(genre))).sum(1)
        return 3.0 + self.base + self.bu(u).squeeze(1) + self.bi(i).squeeze(1) + cross


@torch.no_grad()
def rmse(model, loader):
    model.eval()
    err, n = 0.0, 0
    for u, i, genre, r in loader:
        err += ((model(u, i, genre) - r.float()) ** 2).sum().item()
        n += len(r)
    return (err / n) ** 0.5


lines = write_log()
lines = list(dict.fromkeys(lines))
cut = int(0.8 * len(lines))
train_loader = DataLoader(Log(lines[:cut], buffer=4000), batch_size=64)
val_loader = DataLoader(Log(lines[cut:]), batch_size=256)
model = Towers()
shadow = copy.deepcopy(model)
opt = torch.optim.Adam(model.parameters(), lr=5e-3, weight_decay=2e-5)
for epoch in range(5):
    model.train()
    sq, n = 0.0, 0
    for u, i, genre, r in train_loader:
        out = model(u, i, genre)
        loss = nn.functional.mse_loss(out, r.float())
        opt.zero_grad()
        loss.backward()
        opt.step()
        with torch.no_grad():
            for a, b in zip(shadow.parameters(), model.parameters()):
                a.mul_(DECAY).add_(b, alpha=1 - DECAY)
        sq += loss.item() * len(r)
        n += len(r)
    v = rmse(shadow, val_loader)
    print("epoch %d  train RMSE %.4f  val RMSE %.4f" % (epoch, (sq / n) ** 0.5, v))
print("final val RMSE %.4f" % v)
