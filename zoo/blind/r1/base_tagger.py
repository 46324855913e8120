import random

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

random.seed(17)
torch.manual_seed(17)

NOUNS = [f"n{i}" for i in range(40)]
VERBS = [f"v{i}" for i in range(40)]
AMBIG = [f"a{i}" for i in range(30)]         # noun after DET, verb after PRON
DETS, PRONS, ADJS = ["the", "a", "this"], ["he", "she", "we"], ["big", "red", "old", "new"]
TAGS = ["DET", "PRON", "ADJ", "NOUN", "VERB"]


def clause():
    words = []
    if random.random() < 0.5:
        words.append((random.choice(PRONS), "PRON"))
    else:
        words.append((random.choice(DETS), "DET"))
        for _ in range(random.randint(0, 2)):
            words.append((random.choice(ADJS), "ADJ"))
        words.append((random.choice(NOUNS + AMBIG), "NOUN"))
        return words
    words.append((random.choice(VERBS + AMBIG), "VERB"))
    return words


def sentence():
    out = []
    for _ in range(random.randint(1, 6)):
        out += clause()
    return out


corpus = [sentence() for _ in range(780)]
vocab = {"<pad>": 0}
for sent in corpus:
    for w, _ in sent:
        vocab.setdefault(w, len(vocab))


def collate(batch):
    xs = [torch.tensor([vocab[w] for w, _ in s]) for s in batch]
    ys = [torch.tensor([TAGS.index(t) for _, t in s]) for s in batch]
    lengths = torch.tensor([len(s) for s in batch])
    x = pad_sequence(xs, batch_first=True, padding_value=0)
    y = pad_sequence(ys, batch_first=True, padding_value=-100)
    return x, y, lengths


class Tagger(nn.Module):
    def __init__(self, n_words, n_tags, dim=24, hidden=24):
        super().__init__()
        self.emb = nn.Embedding(n_words, dim, padding_idx=0)
        self.lstm = nn.LSTM(dim, hidden, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * hidden, n_tags)

    def forward(self, x, lengths):
        packed = pack_padded_sequence(self.emb(x), lengths, batch_first=True, enforce_sorted=False)
        h, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        return self.out(h)


train_set, dev_set = corpus[:630], corpus[630:]
model = Tagger(len(vocab), len(TAGS))
loss_fn = nn.CrossEntropyLoss(ignore_index=-100)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

for epoch in range(4):
    model.train()
    random.shuffle(train_set)
    total = 0.0
    for i in range(0, len(train_set), 25):
        x, y, lengths = collate(train_set[i:i + 25])
        logits = model(x, lengths)
        loss = loss_fn(logits.transpose(1, 2), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        x, y, lengths = collate(dev_set)
        logits = model(x, lengths)
        keep = y != -100
        acc = (logits.argmax(-1)[keep] == y[keep]).float().mean().item()
        dev_loss = loss_fn(logits[keep], y[keep]).item()
    print(f"epoch {epoch}  loss {total * 25 / len(train_set):.4f}  dev loss {dev_loss:.4f}  dev token acc {acc:.4f}")
