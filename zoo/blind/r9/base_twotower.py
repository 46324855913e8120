"""Two-tower next-item retrieval with in-batch softmax; metric: recall@10 and MRR over the full catalogue."""
from __future__ import annotations

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)

N_USERS, N_ITEMS, N_TOPICS, HIST = 1500, 600, 20, 8
EPOCHS, BATCH, DIM, LR, TEMPERATURE = 8, 256, 32, 4e-3, 0.1


def simulate(seed: int = 0) -> tuple[list[list[int]], np.ndarray]:
    """Sessions: users have two or three favourite topics; items of one topic are often watched in series."""
    rng = np.random.default_rng(seed)
    topic = np.repeat(np.arange(N_TOPICS), N_ITEMS // N_TOPICS)
    per_topic = N_ITEMS // N_TOPICS
    pop = 1.0 / np.arange(1, per_topic + 1) ** 0.6
    pop /= pop.sum()
    sessions = []
    for _ in range(N_USERS):
        fav = rng.choice(N_TOPICS, rng.integers(2, 4), replace=False)
        seq, cur = [], rng.choice(fav)
        while len(seq) < rng.integers(16, 26):
            if rng.random() < 0.25:
                cur = rng.choice(fav)
            if seq and topic[seq[-1]] == cur and rng.random() < 0.6:
                nxt = cur * per_topic + (seq[-1] % per_topic + rng.integers(1, 4)) % per_topic
            else:
                nxt = cur * per_topic + rng.choice(per_topic, p=pop)
            seq.append(int(nxt))
        sessions.append(seq)
    return sessions, topic


def example(seq: list[int], t: int) -> tuple[list[int], int]:
    """Watch history before position t (left padded with N_ITEMS) and the item watched at t."""
    hist = seq[max(0, t - HIST):t]
    return [N_ITEMS] * (HIST - len(hist)) + hist, seq[t]


class Watches(Dataset):
    def __init__(self, sessions: list[list[int]], split: str):
        rows = []
        for seq in sessions:
            if split == "train":
                rows += [example(seq, t) for t in range(2, len(seq) - 2)]
            else:
                rows.append(example(seq, len(seq) - (2 if split == "val" else 1)))
        self.hist = torch.tensor([r[0] for r in rows])
        self.item = torch.tensor([r[1] for r in rows])

    def __len__(self) -> int:
        return len(self.item)

    def __getitem__(self, i: int):
        return self.hist[i], self.item[i]


class QueryTower(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(N_ITEMS + 1, DIM, padding_idx=N_ITEMS)
        self.pos = nn.Parameter(torch.zeros(HIST))
        self.net = nn.Sequential(nn.Linear(2 * DIM, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, DIM))

    def forward(self, hist):
        e = self.emb(hist)
        w = self.pos.expand(hist.shape).masked_fill(hist == N_ITEMS, -1e9).softmax(1)
        mean = (w.unsqueeze(-1) * e).sum(1)
        return F.normalize(self.net(torch.cat([mean, e[:, -1]], 1)), dim=1)


class ItemTower(nn.Module):
    def __init__(self, topic: np.ndarray):
        super().__init__()
        self.id_emb = nn.Embedding(N_ITEMS, DIM)
        self.topic_emb = nn.Embedding(N_TOPICS, DIM)
        self.register_buffer("topic", torch.as_tensor(topic))
        self.net = nn.Sequential(nn.Linear(2 * DIM, 64), nn.ReLU(), nn.Linear(64, DIM))

    def forward(self, item):
        x = torch.cat([self.id_emb(item), self.topic_emb(self.topic[item])], 1)
        return F.normalize(self.net(x), dim=1)


class TwoTower(nn.Module):
    def __init__(self, topic: np.ndarray):
        super().__init__()
        self.query, self.item = QueryTower(), ItemTower(topic)

    def loss(self, hist, item, log_pop):
        logits = self.query(hist) @ self.item(item).T / TEMPERATURE
        logits = logits - log_pop[item]
        same = item[:, None] == item[None, :]
        same.fill_diagonal_(False)
        return F.cross_entropy(logits.masked_fill(same, -1e9), torch.arange(len(item)))


@torch.no_grad()
def evaluate(model: TwoTower, loader: DataLoader, k: int = 10) -> dict[str, float]:
    model.eval()
    catalogue = model.item(torch.arange(N_ITEMS))
    hits, rr, n = 0.0, 0.0, 0
    for hist, item in loader:
        score = model.query(hist) @ catalogue.T
        rank = (score > score.gather(1, item[:, None])).sum(1) + 1
        hits += (rank <= k).sum().item()
        rr += (1.0 / rank).sum().item()
        n += len(item)
    model.train()
    return {"recall": hits / n, "mrr": rr / n}


def main() -> None:
    torch.manual_seed(7)
    sessions, topic = simulate()
    train, val, test = (Watches(sessions, s) for s in ("train", "val", "test"))
    counts = torch.bincount(train.item, minlength=N_ITEMS).float() + 1
    log_pop = (counts / counts.sum()).log()
    train_loader = DataLoader(train, batch_size=BATCH, shuffle=True, drop_last=True)
    val_loader, test_loader = DataLoader(val, batch_size=500), DataLoader(test, batch_size=500)
    print(f"{len(train)} training watches, {len(val)} val, {len(test)} test")

    model = TwoTower(topic)
    opt = torch.optim.Adam(model.parameters(), lr=LR)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, LR, total_steps=EPOCHS * len(train_loader))
    for epoch in range(EPOCHS):
        total = 0.0
        for hist, item in train_loader:
            loss = model.loss(hist, item, log_pop)
            opt.zero_grad()
            loss.backward()
            opt.step()
            sched.step()
            total += loss.item()
        m = evaluate(model, val_loader)
        print(f"epoch {epoch + 1} loss {total / len(train_loader):.3f} val recall@10 {m['recall']:.3f} mrr {m['mrr']:.3f}")
    m = evaluate(model, test_loader)
    print(f"test recall@10 {m['recall']:.3f} mrr {m['mrr']:.3f}")


if __name__ == "__main__":
    main()
