"""Customer messages -> sentiment (negative / neutral / positive). Word-level vocabulary, BiLSTM with additive attention."""
from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)


@dataclass
class Config:
    seed: int = 5
    n_train: int = 2600
    n_val: int = 600
    n_test: int = 800
    max_len: int = 24
    emb: int = 32
    hidden: int = 32
    batch: int = 32
    epochs: int = 7
    lr: float = 3e-3


cfg = Config()
random.seed(cfg.seed)
np.random.seed(cfg.seed)
torch.manual_seed(cfg.seed)

SYL = ["ba", "do", "ki", "lu", "me", "no", "pi", "ra", "su", "ta", "ve", "zo"]
FILLER = sorted({a + b + c for a in SYL for b in SYL for c in ("", "n", "r")})[:320]
GOOD = ["great", "love", "fast", "friendly", "perfect", "easy", "reliable", "clean", "happy", "excellent"]
BAD = ["awful", "slow", "broken", "rude", "dirty", "expensive", "late", "angry", "useless", "terrible"]
NEGATE = ["not", "never", "hardly"]


def message() -> tuple[list[str], int]:
    """A message tells a story and usually ends with its verdict; earlier opinions are about other things."""
    label = random.randrange(3)
    body = random.choices(FILLER, k=random.randint(4, 30))
    for _ in range(random.randint(0, 2)):
        body[random.randrange(len(body))] = random.choice(GOOD + BAD)
    verdict = ["overall"]
    if label == 1:
        verdict += [random.choice(GOOD), "but", random.choice(BAD)] if random.random() < 0.5 else ["fine"]
    else:
        positive = label == 2
        if random.random() < 0.35:
            verdict += [random.choice(NEGATE), random.choice(BAD if positive else GOOD)]
        else:
            verdict += [random.choice(GOOD if positive else BAD)]
    tail = random.choices(FILLER, k=random.randint(0, 3))
    if random.random() < 0.03:
        label = random.randrange(3)
    return body + verdict + tail, label


train_raw = [message() for _ in range(cfg.n_train)]
val_raw = [message() for _ in range(cfg.n_val)]
test_raw = [message() for _ in range(cfg.n_test)]


def build_vocab(rows) -> dict[str, int]:
    counts = Counter(w for words, _ in rows for w in words)
    vocab = {"<pad>": 0, "<unk>": 1}
    for w, _ in counts.most_common():
        vocab[w] = len(vocab)
    return vocab


class Messages(Dataset):
    def __init__(self, rows, vocab):
        self.items = []
        for words, label in rows:
            ids = [vocab.get(w, 1) for w in words]
            self.items.append((ids[-cfg.max_len:], label))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate(items):
    lengths = torch.tensor([len(ids) for ids, _ in items])
    tokens = torch.zeros(len(items), int(lengths.max()), dtype=torch.long)
    for i, (ids, _) in enumerate(items):
        tokens[i, : len(ids)] = torch.tensor(ids)
    return tokens, lengths, torch.tensor([y for _, y in items])


class Attention(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.proj = nn.Linear(dim, dim)
        self.v = nn.Linear(dim, 1, bias=False)

    def forward(self, h, mask):
        score = self.v(torch.tanh(self.proj(h))).squeeze(-1)
        score = score.masked_fill(~mask, -1e4)
        weight = torch.softmax(score, dim=-1)
        return torch.einsum("bt,btd->bd", weight, h)


class Classifier(nn.Module):
    def __init__(self, n_words: int):
        super().__init__()
        self.emb = nn.Embedding(n_words, cfg.emb, padding_idx=0)
        self.lstm = nn.LSTM(cfg.emb, cfg.hidden, batch_first=True, bidirectional=True)
        self.att = Attention(2 * cfg.hidden)
        self.drop = nn.Dropout(0.3)
        self.out = nn.Linear(2 * cfg.hidden, 3)

    def forward(self, tokens, lengths):
        x = self.drop(self.emb(tokens))
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        h, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        mask = tokens != 0
        return self.out(self.drop(self.att(h, mask)))


@torch.no_grad()
def predict(model, data: Messages) -> torch.Tensor:
    """Logits for a whole set; sorted by length so that little padding is computed."""
    model.eval()
    order = sorted(range(len(data)), key=lambda i: len(data[i][0]))
    chunks = []
    for start in range(0, len(order), 200):
        tokens, lengths, _ = collate([data[i] for i in order[start:start + 200]])
        chunks.append(model(tokens, lengths))
    logits = torch.cat(chunks)
    result = torch.empty_like(logits)
    result[torch.tensor(order)] = logits
    return result


def scores(logits, data):
    y = torch.tensor([label for _, label in data.items])
    pred = logits.argmax(1)
    f1 = []
    for c in range(3):
        tp = ((pred == c) & (y == c)).sum().item()
        f1.append(2 * tp / max(1, (pred == c).sum().item() + (y == c).sum().item()))
    return nn.functional.cross_entropy(logits, y).item(), (pred == y).float().mean().item(), sum(f1) / 3


vocab = build_vocab(train_raw)
train_set = Messages(train_raw, vocab)
val_set = Messages(val_raw, vocab)
test_set = Messages(test_raw, vocab)
loader = DataLoader(train_set, batch_size=cfg.batch, shuffle=True, collate_fn=collate)

model = Classifier(len(vocab))
optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
print(f"{len(vocab)} words, {sum(p.numel() for p in model.parameters())} parameters")

for epoch in range(cfg.epochs):
    model.train()
    total, hits = 0.0, 0
    for tokens, lengths, labels in loader:
        optimizer.zero_grad()
        logits = model(tokens, lengths)
        loss = nn.functional.cross_entropy(logits, labels)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        total += loss.item() * len(labels)
        hits += (logits.argmax(1) == labels).sum().item()
    vl, va, vf = scores(predict(model, val_set), val_set)
    print(f"[{epoch + 1}/{cfg.epochs}] loss {total / len(train_set):.3f} acc {hits / len(train_set):.3f}"
          f" | val loss {vl:.3f} acc {va:.3f} macro-F1 {vf:.3f}")

tl, ta, tf = scores(predict(model, test_set), test_set)
print(f"test: loss {tl:.3f} accuracy {ta:.3f} macro-F1 {tf:.3f}")
