"""Sentiment of made-up reviews: GRU with attention pooling over padded sentences."""
import argparse
import math
import random

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=7)
parser.add_argument("--lr", type=float, default=8e-3)
parser.add_argument("--batch-size", type=int, default=64)
parser.add_argument("--dim", type=int, default=32)
parser.add_argument("--max-len", type=int, default=30)
parser.add_argument("--warmup", type=int, default=20)
parser.add_argument("--seed", type=int, default=11)
args = parser.parse_args()

torch.set_num_threads(1)
torch.manual_seed(args.seed)
random.seed(args.seed)
PAD, UNK = 0, 1

GOOD = [f"good{i}" for i in range(12)]
BAD = [f"bad{i}" for i in range(12)]
FILL = [f"w{i}" for i in range(250)]
NEG = ["not", "never", "hardly"]


def review():
    words, score = [], 0
    for _ in range(random.choice([1, 1, 3])):
        for _ in range(random.randint(0, 6)):
            words.append(FILL[min(int(random.expovariate(1 / 40)), len(FILL) - 1)])
        s = random.choice([-1, 1])
        w = random.choice(GOOD if s > 0 else BAD)
        if random.random() < 0.25:
            words.append(random.choice(NEG))
            s = -s
        words.append(w)
        score += s
    label = int(score > 0)
    if random.random() < 0.02:
        label = 1 - label
    return words, label


def build_vocab(rows, min_count=1):
    counts = {}
    for words, _ in rows:
        for w in words:
            counts[w] = counts.get(w, 0) + 1
    keep = sorted((w for w in counts if counts[w] >= min_count), key=lambda w: (-counts[w], w))
    return {w: i + 2 for i, w in enumerate(keep)}


def encode(rows, vocab):
    return [([vocab.get(w, UNK) for w in words][: args.max_len], y) for words, y in rows]


def collate(batch):
    ids = [torch.tensor(b[0]) for b in batch]
    padded = pad_sequence(ids, batch_first=True, padding_value=PAD)
    return {"input_ids": padded, "mask": padded != PAD, "labels": torch.tensor([b[1] for b in batch])}


class Classifier(nn.Module):
    def __init__(self, vocab_size, dim):
        super().__init__()
        self.emb = nn.Embedding(vocab_size, dim, padding_idx=PAD)
        self.gru = nn.GRU(dim, dim, batch_first=True, bidirectional=True)
        self.score = nn.Linear(2 * dim, 1)
        self.drop = nn.Dropout(0.25)
        self.head = nn.Sequential(nn.Linear(2 * dim, dim), nn.ReLU(), nn.Linear(dim, 2))

    def forward(self, input_ids, mask):
        h, _ = self.gru(self.drop(self.emb(input_ids)))
        a = self.score(torch.tanh(h)).squeeze(-1)
        a = a.masked_fill(~mask, float("-inf"))
        w = torch.softmax(a, dim=1)
        pooled = (w.unsqueeze(-1) * h).sum(1)
        return self.head(self.drop(pooled))


class Trainer:
    def __init__(self, model, train_loader, val_loader):
        self.model, self.train_loader, self.val_loader = model, train_loader, val_loader
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.01)
        self.total_steps = args.epochs * len(train_loader)
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimizer, self.factor)

    def factor(self, step):
        if step < args.warmup:
            return (step + 1) / args.warmup
        return max(0.02, 0.5 * (1 + math.cos(math.pi * step / self.total_steps)))

    def train_epoch(self):
        self.model.train()
        losses = []
        for batch in self.train_loader:
            logits = self.model(batch["input_ids"], batch["mask"])
            loss = self.criterion(logits, batch["labels"])
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            self.scheduler.step()
            losses.append(loss.item())
        return sum(losses) / len(losses)

    @torch.no_grad()
    def validate(self, loader):
        self.model.eval()
        loss, right, n = 0.0, 0, 0
        for batch in loader:
            logits = self.model(batch["input_ids"], batch["mask"])
            loss += self.criterion(logits, batch["labels"]).item() * len(logits)
            right += (logits.argmax(-1) == batch["labels"]).sum().item()
            n += len(logits)
        return loss / n, right / n

    def fit(self):
        for epoch in range(args.epochs):
            train_loss = self.train_epoch()
            val_loss, val_acc = self.validate(self.val_loader)
            print(f"epoch {epoch + 1}/{args.epochs} train {train_loss:.4f} val {val_loss:.4f} acc {val_acc:.3f} "
                  f"lr {self.scheduler.get_last_lr()[0]:.2e}")


rows = [review() for _ in range(2800)]
train_rows, val_rows, test_rows = rows[:1800], rows[1800:2200], rows[2200:]
vocab = build_vocab(train_rows)
train_data = encode(train_rows, vocab)
val_data = encode(val_rows, vocab)
test_data = encode(test_rows, vocab)
print(f"vocab {len(vocab)}, positive share {sum(y for _, y in train_data) / len(train_data):.3f}")

train_loader = DataLoader(train_data, args.batch_size, shuffle=True, collate_fn=collate)
val_loader = DataLoader(val_data, args.batch_size, collate_fn=collate)
test_loader = DataLoader(test_data, args.batch_size, collate_fn=collate)

model = Classifier(len(vocab) + 2, args.dim)
trainer = Trainer(model, train_loader, val_loader)
trainer.fit()
test_loss, test_acc = trainer.validate(test_loader)
print(f"test loss {test_loss:.4f} accuracy {test_acc:.3f}")
