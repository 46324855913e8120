"""Sentiment of product reviews, streamed from shard files (one shard per product category)."""
import argparse
import itertools
import random
from collections import Counter

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

CATEGORIES = 8


def write_shard(category, n, seed):
    """Stand-in for reading a shard file."""
    r = random.Random(seed * 100 + category)
    rows = []
    for i in range(n):
        label = int(i >= n // 2)
        body = [f"w{r.randrange(200)}" for _ in range(r.randrange(10, 36))]
        verdict = [f"c{category}_{'good' if r.random() < (0.85 if label else 0.15) else 'bad'}{r.randrange(4)}" for _ in range(4)]
        rows.append((body + verdict, label))
    return rows


def build_vocab(shards):
    freq = Counter(w for shard in shards for words, _ in shard for w in words)
    return {w: i + 2 for i, (w, _) in enumerate(freq.most_common())}


class ReviewStream(IterableDataset):
    def __init__(self, shards, vocab, max_len, buffer_size=0, seed=0):
        self.shards, self.vocab, self.max_len = shards, vocab, max_len
        self.buffer_size, self.seed, self.epoch = buffer_size, seed, 0

    def encode(self, words):
        ids = [self.vocab.get(w, 1) for w in words][:self.max_len]
        return torch.tensor(ids + [0] * (self.max_len - len(ids)))

    def rows(self):
        info = get_worker_info()
        shards = self.shards
        if info is not None:
            shards = shards[info.id::info.num_workers]
        for shard in shards:
            yield from shard

    def __iter__(self):
        rng = random.Random(self.seed + self.epoch)
        buffer = []
        for words, label in self.rows():
            if len(buffer) < self.buffer_size:
                buffer.append((words, label))
                continue
            if buffer:
                k = rng.randrange(len(buffer))
                (words, label), buffer[k] = buffer[k], (words, label)
            yield self.encode(words), label
        rng.shuffle(buffer)
        for words, label in buffer:
            yield self.encode(words), label


class Classifier(nn.Module):
    def __init__(self, vocab_size, dim=24):
        super().__init__()
        self.emb = nn.Embedding(vocab_size, dim, padding_idx=0)
        self.head = nn.Sequential(nn.Linear(dim, 32), nn.ReLU(), nn.Linear(32, 2))

    def forward(self, ids):
        e = self.emb(ids)
        n = (ids != 0).sum(1, keepdim=True).clamp(min=1)
        return self.head(e.sum(1) / n ** 0.5)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=4)
    ap.add_argument("--batch-size", type=int, default=32)
    ap.add_argument("--max-len", type=int, default=40)
    args = ap.parse_args()
    torch.manual_seed(0)

    train_shards = [write_shard(c, 320, seed=1) for c in range(CATEGORIES)]
    val_shards = [write_shard(c, 60, seed=2) for c in range(CATEGORIES)]
    vocab = build_vocab(train_shards)
    train_ds = ReviewStream(train_shards, vocab, args.max_len, buffer_size=640)
    val_ds = ReviewStream(val_shards, vocab, args.max_len)
    train_dl = DataLoader(train_ds, batch_size=args.batch_size, num_workers=2)
    val_dl = DataLoader(val_ds, batch_size=120)
    steps_per_epoch = sum(len(s) for s in train_shards) // args.batch_size

    model = Classifier(len(vocab) + 2)
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    lossf = nn.CrossEntropyLoss()
    for epoch in range(args.epochs):
        train_ds.epoch = epoch
        model.train()
        total = 0.0
        for ids, y in itertools.islice(train_dl, steps_per_epoch):
            loss = lossf(model(ids), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        model.eval()
        vloss, right, n = 0.0, 0, 0
        with torch.no_grad():
            for ids, y in val_dl:
                out = model(ids)
                vloss += lossf(out, y).item() * len(y)
                right += (out.argmax(1) == y).sum().item()
                n += len(y)
        print(f"epoch {epoch + 1}/{args.epochs} train loss {total / steps_per_epoch:.3f} val loss {vloss / n:.3f} val acc {right / n:.3f}")


if __name__ == "__main__":
    main()
