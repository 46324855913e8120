# BiLSTM named entity tagger on CoNLL-style files
import random
from collections import Counter

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

random.seed(13)
torch.manual_seed(13)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
PAD, UNK, PAD_TAG = 0, 1, -100


def read_conll(path):
    sentences, words, tags = [], [], []
    for line in open(path, encoding="utf-8"):
        parts = line.split()
        if not parts:
            if words:
                sentences.append((words, tags))
            words, tags = [], []
        elif parts[0] != "-DOCSTART-":
            words.append(parts[0])
            tags.append(parts[-1])
    if words:
        sentences.append((words, tags))
    return sentences


def normalise(word):
    return "<num>" if word.replace(".", "").replace(",", "").isdigit() else word.lower()


def word_shape(word):
    return 0 if word.islower() else 1 if word.isupper() else 2 if word[0].isupper() else 3


train = read_conll("data/conll/train.txt")
dev = read_conll("data/conll/dev.txt")
test = read_conll("data/conll/test.txt")

freq = Counter(normalise(w) for words, _ in train for w in words)
vocab = {w: i + 2 for i, (w, c) in enumerate(freq.most_common()) if c > 1}
tagset = sorted({t for _, tags in train for t in tags})
tag2id = {t: i for i, t in enumerate(tagset)}


def encode(sentences):
    data = []
    for words, tags in sentences:
        ids = torch.tensor([vocab.get(normalise(w), UNK) for w in words])
        shapes = torch.tensor([word_shape(w) for w in words])
        data.append((ids, shapes, torch.tensor([tag2id[t] for t in tags])))
    return data


def batches(data, size, shuffle):
    order = list(range(len(data)))
    if shuffle:
        random.shuffle(order)
    for start in range(0, len(order), size):
        ids, shapes, tags = zip(*[data[i] for i in order[start:start + size]])
        lengths = torch.tensor([len(x) for x in ids])
        yield (pad_sequence(ids, batch_first=True, padding_value=PAD).to(device),
               pad_sequence(shapes, batch_first=True).to(device), lengths,
               pad_sequence(tags, batch_first=True, padding_value=PAD_TAG).to(device))


class Tagger(nn.Module):
    def __init__(self, n_words, n_tags, dim=100, hidden=200, p=0.4):
        super().__init__()
        self.word_emb = nn.Embedding(n_words, dim, padding_idx=PAD)
        self.shape_emb = nn.Embedding(4, 10)
        self.lstm = nn.LSTM(dim + 10, hidden, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * hidden, n_tags)
        self.p = p

    def forward(self, ids, shapes, lengths):
        x = torch.cat([self.word_emb(ids), self.shape_emb(shapes)], dim=-1)
        x = F.dropout(x, self.p, training=self.training)
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        h, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        return self.out(F.dropout(h, self.p, training=self.training))


def spans(tags):
    found, start, kind = set(), None, None
    for i, tag in enumerate(tags + ["O"]):
        if start is not None and (tag == "O" or tag[0] == "B" or tag[2:] != kind):
            found.add((start, i, kind))
            start, kind = None, None
        if tag != "O" and start is None:
            start, kind = i, tag[2:]
    return found


@torch.no_grad()
def span_f1(model, data):
    model.eval()
    tp = n_pred = n_gold = 0
    for ids, shapes, lengths, tags in batches(data, 64, shuffle=False):
        pred = model(ids, shapes, lengths).argmax(-1).cpu()
        for p, g, n in zip(pred, tags.cpu(), lengths.tolist()):
            ps = spans([tagset[i] for i in p[:n].tolist()])
            gs = spans([tagset[i] for i in g[:n].tolist()])
            tp, n_pred, n_gold = tp + len(ps & gs), n_pred + len(ps), n_gold + len(gs)
    return 2 * tp / max(n_pred + n_gold, 1)


train_data, dev_data, test_data = encode(train), encode(dev), encode(test)
model = Tagger(max(vocab.values()) + 1, len(tagset)).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
best_f1, bad_epochs, patience = 0.0, 0, 5

for epoch in range(50):
    model.train()
    loss_sum = n_tokens = 0
    for ids, shapes, lengths, tags in batches(train_data, 32, shuffle=True):
        logits = model(ids, shapes, lengths)
        loss = F.cross_entropy(logits.transpose(1, 2), tags, ignore_index=PAD_TAG)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        loss_sum += loss.item() * lengths.sum().item()
        n_tokens += lengths.sum().item()
    f1 = span_f1(model, dev_data)
    print(f"{epoch:2d} loss {loss_sum / n_tokens:.4f} dev F1 {f1:.4f}")
    if f1 > best_f1:
        best_f1, bad_epochs = f1, 0
        torch.save(model.state_dict(), "tagger.pt")
    else:
        bad_epochs += 1
        if bad_epochs >= patience:
            break

model.load_state_dict(torch.load("tagger.pt"))
print(f"test F1 {span_f1(model, test_data):.4f}")
