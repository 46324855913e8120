"""BiLSTM tagger for person / place / organisation spans.

Research code layout: config, corpus, batching, model, scorer, loop.
"""
import random
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence


@dataclass
class Config:
    seed: int = 13
    n_train: int = 1600
    n_dev: int = 300
    emb_dim: int = 32
    shape_dim: int = 8
    hidden: int = 48
    dropout: float = 0.25
    batch_size: int = 32
    lr: float = 4e-3
    weight_decay: float = 1e-4
    epochs: int = 7
    clip: float = 5.0


TAGS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC", "B-ORG", "I-ORG"]
TAG2ID = {t: i for i, t in enumerate(TAGS)}
PAD_TAG = -100
SHAPES = {"<pad>": 0, "lower": 1, "Title": 2, "UPPER": 3, "digit": 4, "other": 5}

SYL = "ba ko ri ten mar lo vi sha dun per al go ne tis um fa ced wol hin zu".split()
FILLER = ("the a of and report said that it was very new market plan week after before while people "
          "often house school car road team talk over price growth slow small large many some rain sun").split()


def make_word(rng, k=None):
    return "".join(rng.choice(SYL) for _ in range(k or rng.randint(2, 3)))


def entity(rng, kind):
    if kind == "PER":
        words = [make_word(rng).capitalize() for _ in range(rng.randint(1, 2))]
    elif kind == "LOC":
        words = [make_word(rng).capitalize()]
        if rng.random() < 0.4:
            words = [rng.choice(["North", "South", "New"])] + words
    else:
        words = [make_word(rng, 2).upper()] if rng.random() < 0.5 else [make_word(rng).capitalize()]
        if rng.random() < 0.5:
            words.append(rng.choice(["Group", "Corp", "Bank"]))
    return words, [f"B-{kind}"] + [f"I-{kind}"] * (len(words) - 1)


def sentence(rng):
    words, tags = [], []

    def filler(lo, hi):
        for _ in range(rng.randint(lo, hi)):
            r = rng.random()
            if r < 0.2:
                w = make_word(rng)
            elif r < 0.25:
                w = str(rng.randint(1, 2000))
            else:
                w = rng.choice(FILLER)
            words.append(w)
            tags.append("O")

    def put(kind):
        w, t = entity(rng, kind)
        words.extend(w)
        tags.extend(t)

    for _ in range(rng.choice([1, 1, 1, 1, 2, 6])):
        filler(1, 4)
        kind = rng.choice(["PER", "LOC", "ORG"])
        if kind == "LOC":
            if rng.random() < 0.55:
                words.append(rng.choice(["in", "near", "at"]))
                tags.append("O")
            put("LOC")
        elif kind == "PER":
            put("PER")
            if rng.random() < 0.55:
                words.append(rng.choice(["visited", "smiled", "wrote"]))
                tags.append("O")
        else:
            put("ORG")
            if rng.random() < 0.55:
                words.append(rng.choice(["hired", "announced", "shares"]))
                tags.append("O")
    filler(0, 3)
    words.append(".")
    tags.append("O")
    return words, tags


def word_shape(w):
    if w.isdigit():
        return SHAPES["digit"]
    if w.isupper():
        return SHAPES["UPPER"]
    if w.istitle():
        return SHAPES["Title"]
    if w.islower():
        return SHAPES["lower"]
    return SHAPES["other"]


def build_vocab(sents, min_count=3):
    counts = {}
    for words, _ in sents:
        for w in words:
            counts[w.lower()] = counts.get(w.lower(), 0) + 1
    vocab = {"<pad>": 0, "<unk>": 1}
    for w, c in sorted(counts.items()):
        if c >= min_count:
            vocab[w] = len(vocab)
    return vocab


def encode(sents, vocab):
    out = []
    for words, tags in sents:
        tokens = [w.lower() for w in words]
        ids = torch.tensor([vocab.get(w, 1) for w in tokens])
        shp = torch.tensor([word_shape(w) for w in words])
        tgt = torch.tensor([TAG2ID[t] for t in tags])
        out.append((ids, shp, tgt))
    return out


def collate(items):
    lengths = torch.tensor([len(i[0]) for i in items])
    ids = pad_sequence([i[0] for i in items], batch_first=True)
    shp = pad_sequence([i[1] for i in items], batch_first=True)
    tgt = pad_sequence([i[2] for i in items], batch_first=True, padding_value=PAD_TAG)
    return ids, shp, tgt, lengths


def batches(data, size, rng=None):
    idx = list(range(len(data)))
    if rng is not None:
        rng.shuffle(idx)
    for i in range(0, len(idx), size):
        yield collate([data[j] for j in idx[i:i + size]])


class Tagger(nn.Module):
    def __init__(self, cfg, n_words):
        super().__init__()
        self.word_emb = nn.Embedding(n_words, cfg.emb_dim, padding_idx=0)
        self.shape_emb = nn.Embedding(len(SHAPES), cfg.shape_dim, padding_idx=0)
        self.lstm = nn.LSTM(cfg.emb_dim + cfg.shape_dim, cfg.hidden, batch_first=True, bidirectional=True)
        self.drop = nn.Dropout(cfg.dropout)
        self.out = nn.Linear(2 * cfg.hidden, len(TAGS))

    def forward(self, ids, shp, lengths):
        x = self.drop(torch.cat([self.word_emb(ids), self.shape_emb(shp)], dim=-1))
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        h, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        return self.out(self.drop(h))


def spans(tags):
    found, start, kind = set(), None, None
    for i, t in enumerate(tags + ["O"]):
        if start is not None and t != f"I-{kind}":
            found.add((start, i, kind))
            start = None
        if t.startswith("B-"):
            start, kind = i, t[2:]
    return found


@torch.no_grad()
def score(model, data, crit, cfg):
    model.eval()
    tp = n_pred = n_gold = right = total = 0
    loss_sum, nb = 0.0, 0
    for ids, shp, tgt, lengths in batches(data, cfg.batch_size):
        logits = model(ids, shp, lengths)
        loss_sum += crit(logits.flatten(0, 1), tgt.flatten()).item()
        nb += 1
        pred = logits.argmax(-1)
        mask = tgt != PAD_TAG
        right += ((pred == tgt) & mask).sum().item()
        total += mask.sum().item()
        for p, g, n in zip(pred.tolist(), tgt.tolist(), lengths.tolist()):
            sp = spans([TAGS[k] for k in p[:n]])
            sg = spans([TAGS[k] for k in g[:n]])
            tp += len(sp & sg)
            n_pred += len(sp)
            n_gold += len(sg)
    prec, rec = tp / max(n_pred, 1), tp / max(n_gold, 1)
    f1 = 2 * prec * rec / max(prec + rec, 1e-9)
    return loss_sum / nb, right / total, f1


def make_optimizer(model, cfg):
    decay, no_decay = [], []
    for name, p in model.named_parameters():
        if name.endswith("bias") or "emb" in name:
            no_decay.append(p)
        else:
            decay.append(p)
    groups = [{"params": decay, "weight_decay": cfg.weight_decay}, {"params": no_decay, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=cfg.lr)


def main():
    cfg = Config()
    rng = random.Random(cfg.seed)
    torch.manual_seed(cfg.seed)
    train_s = [sentence(rng) for _ in range(cfg.n_train)]
    dev_s = [sentence(rng) for _ in range(cfg.n_dev)]
    vocab = build_vocab(train_s)
    train, dev = encode(train_s, vocab), encode(dev_s, vocab)
    print(f"vocab {len(vocab)}  train {len(train)}  dev {len(dev)}")

    model = Tagger(cfg, len(vocab))
    crit = nn.CrossEntropyLoss(ignore_index=PAD_TAG)
    optimizer = make_optimizer(model, cfg)

    for epoch in range(1, cfg.epochs + 1):
        model.train()
        running, steps = 0.0, 0
        for ids, shp, tgt, lengths in batches(train, cfg.batch_size, rng):
            optimizer.zero_grad()
            logits = model(ids, shp, lengths)
            loss = crit(logits.flatten(0, 1), tgt.flatten())
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), cfg.clip)
            optimizer.step()
            running += loss.item()
            steps += 1
        dev_loss, dev_acc, dev_f1 = score(model, dev, crit, cfg)
        print(f"epoch {epoch}: train loss {running / steps:.4f} | dev loss {dev_loss:.4f} "
              f"token acc {dev_acc:.4f} span F1 {dev_f1:.4f}")
    print(f"final span F1 {dev_f1:.4f} token acc {dev_acc:.4f}")


if __name__ == "__main__":
    main()
