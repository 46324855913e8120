import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

PAD, BOS = 0, 1
WORDS, TAGS = 50, 5
IGNORE = -100


class TaggedSentences(Dataset):
    """Each word has a default tag; a handful of words change the tag of the word that follows."""

    def __init__(self, size, seed):
        r = random.Random(seed)
        lex = random.Random(0)
        self.default = [lex.choice([0, 0, 0, 1, 2, 3]) for _ in range(WORDS)]
        triggers = set(range(0, WORDS, 6))
        self.items = []
        for _ in range(size):
            n = r.choice([3, 4, 5, 6, 7, 8, 9, 10, 24, 28])
            words = [r.randrange(WORDS) for _ in range(n)]
            tags = []
            for i, w in enumerate(words):
                tag = self.default[w]
                if i and words[i - 1] in triggers:
                    tag = (tag + 2) % TAGS
                if r.random() < 0.15:
                    tag = r.randrange(TAGS)
                tags.append(tag)
            ids = [BOS] + [w + 2 for w in words]
            labels = [IGNORE] + tags
            self.items.append({"ids": torch.tensor(ids), "labels": torch.tensor(labels)})

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate(items):
    ids = [it["ids"] for it in items]
    labels = [it["labels"] for it in items]
    return {"ids": pad_sequence(ids, batch_first=True, padding_value=PAD),
            "labels": pad_sequence(labels, batch_first=True, padding_value=IGNORE)}


class Tagger(nn.Module):
    def __init__(self, dim=32, hidden=48):
        super().__init__()
        self.emb = nn.Embedding(WORDS + 2, dim, padding_idx=PAD)
        self.rnn = nn.GRU(dim, hidden, batch_first=True)
        self.out = nn.Linear(hidden, TAGS)

    def forward(self, ids):
        h, _ = self.rnn(self.emb(ids))
        return self.out(h)


def token_loss(logits, labels):
    return F.cross_entropy(logits.reshape(-1, TAGS), labels.reshape(-1), ignore_index=IGNORE)


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    right = count = 0
    for batch in loader:
        pred = model(batch["ids"]).argmax(-1)
        mask = batch["labels"] != IGNORE
        right += (pred[mask] == batch["labels"][mask]).sum().item()
        count += mask.sum().item()
    return right / count


torch.manual_seed(1)
train_loader = DataLoader(TaggedSentences(750, seed=10), batch_size=30, shuffle=True, collate_fn=collate)
val_loader = DataLoader(TaggedSentences(200, seed=20), batch_size=50, collate_fn=collate)
model = Tagger()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)

for epoch in range(4):
    model.train()
    losses = []
    for batch in train_loader:
        loss = token_loss(model(batch["ids"]), batch["labels"])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    print("epoch %d  train loss %.3f  val token accuracy %.3f" % (epoch + 1, sum(losses) / len(losses), evaluate(model, val_loader)))
