# %% [markdown]
# Named entity tagging with BIO labels: char-free BiLSTM tagger, span-level F1.

# %%
import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

torch.manual_seed(0)
random.seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
PAD_WORD, UNK_WORD, PAD_TAG = 0, 1, -100


# %%
def read_conll(path):
    """One 'word tag' pair per line, sentences separated by empty lines."""
    sentences, words, tags = [], [], []
    with open(path, encoding="utf-8") as f:
        for line in f:
            parts = line.split()
            if parts:
                words.append(parts[0])
                tags.append(parts[-1])
            elif words:
                sentences.append((words, tags))
                words, tags = [], []
    if words:
        sentences.append((words, tags))
    return sentences


train_sents = read_conll("ner/train.txt")
dev_sents = read_conll("ner/dev.txt")

word2id = {"<pad>": PAD_WORD, "<unk>": UNK_WORD}
tag2id = {}
for words, tags in train_sents:
    for w, t in zip(words, tags):
        word2id.setdefault(w.lower(), len(word2id))
        tag2id.setdefault(t, len(tag2id))
id2tag = {i: t for t, i in tag2id.items()}


# %%
def encode(words, tags, train):
    ids = [word2id.get(w.lower(), UNK_WORD) for w in words]
    if train:  # word dropout gives <unk> a trained vector
        ids = [UNK_WORD if random.random() < 0.05 else i for i in ids]
    shape = [0 if w.islower() else 1 if w.istitle() else 2 if w.isupper() else 3 for w in words]
    return torch.tensor(ids), torch.tensor(shape), torch.tensor([tag2id[t] for t in tags])


def batches(sentences, size, train):
    order = list(range(len(sentences)))
    if train:
        random.shuffle(order)
    for s in range(0, len(order), size):
        rows = [encode(*sentences[i], train) for i in order[s:s + size]]
        ids, shapes, tags = zip(*rows)
        lengths = torch.tensor([len(r) for r in ids])
        yield (pad_sequence(ids, batch_first=True, padding_value=PAD_WORD).to(device),
               pad_sequence(shapes, batch_first=True).to(device),
               pad_sequence(tags, batch_first=True, padding_value=PAD_TAG).to(device),
               lengths)


# %%
class Tagger(nn.Module):
    def __init__(self, n_words, n_tags, emb=100, hidden=200):
        super().__init__()
        self.words = nn.Embedding(n_words, emb, padding_idx=PAD_WORD)
        self.shapes = nn.Embedding(4, 10)
        self.lstm = nn.LSTM(emb + 10, hidden, num_layers=2, batch_first=True, bidirectional=True, dropout=0.3)
        self.drop = nn.Dropout(0.5)
        self.out = nn.Linear(2 * hidden, n_tags)

    def forward(self, ids, shapes, lengths):
        x = self.drop(torch.cat([self.words(ids), self.shapes(shapes)], dim=-1))
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        h, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        return self.out(self.drop(h))


# %%
def spans(tags):
    """Set of (start, end, type) with exclusive end."""
    found, start, kind = set(), None, None
    for i, tag in enumerate(list(tags) + ["O"]):
        prefix, _, label = tag.partition("-")
        if start is not None and (prefix != "I" or label != kind):
            found.add((start, i, kind))
            start, kind = None, None
        if prefix == "B" or (prefix == "I" and start is None):
            start, kind = i, label
    return found


@torch.no_grad()
def evaluate(model, sentences):
    model.eval()
    tp = n_pred = n_gold = correct = total = 0
    for ids, shapes, tags, lengths in batches(sentences, 64, train=False):
        pred = model(ids, shapes, lengths).argmax(-1)
        keep = tags != PAD_TAG
        correct += (pred[keep] == tags[keep]).sum().item()
        total += keep.sum().item()
        for p, g, n in zip(pred.tolist(), tags.tolist(), lengths.tolist()):
            ps = spans([id2tag[t] for t in p[:n]])
            gs = spans([id2tag[t] for t in g[:n]])
            tp += len(ps & gs)
            n_pred += len(ps)
            n_gold += len(gs)
    precision, recall = tp / max(n_pred, 1), tp / max(n_gold, 1)
    f1 = 2 * precision * recall / max(precision + recall, 1e-9)
    return correct / total, precision, recall, f1


# %%
model = Tagger(len(word2id), len(tag2id)).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.9)
best_f1 = -1.0
for epoch in range(25):
    model.train()
    loss_sum, n_tokens = 0.0, 0
    for ids, shapes, tags, lengths in batches(train_sents, 32, train=True):
        logits = model(ids, shapes, lengths)
        loss = F.cross_entropy(logits.flatten(0, 1), tags.flatten(), ignore_index=PAD_TAG)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        loss_sum += loss.item() * lengths.sum().item()
        n_tokens += lengths.sum().item()
    scheduler.step()
    acc, p, r, f1 = evaluate(model, dev_sents)
    print(f"{epoch:2d} loss {loss_sum / n_tokens:.4f} dev acc {acc:.4f} P {p:.4f} R {r:.4f} F1 {f1:.4f}")
    if f1 > best_f1:
        best_f1 = f1
        torch.save({"model": model.state_dict(), "word2id": word2id, "tag2id": tag2id}, "tagger.pt")
