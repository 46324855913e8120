"""Tagging of medication mentions in clinical notes: bidirectional GRU over padded notes."""
import random
from collections import Counter

import numpy as np
import torch
import torch.nn as nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

torch.set_num_threads(1)
TAGS = ["O", "PAST", "PLAN", "DOSE"]
PAD, UNK = 0, 1
IGNORE = -100
FILLERS = [f"w{i}" for i in range(120)]
DRUGS = [f"drug{i}" for i in range(60)]
BRANDS = [f"name{i}" for i in range(1500)]
VERBS = ["took", "given", "start", "continue", "stop", "on"]


def mention(rng, section):
    rare = rng.random() < 0.5
    word = rng.choice(BRANDS) if rare else rng.choice(DRUGS)
    # names that stand for a person or a place are not medication
    tag = "O" if rare and int(word[4:]) % 2 else section
    words, tags = [word], [tag]
    if rng.random() < 0.5:
        words.insert(0, rng.choice(VERBS))
        tags.insert(0, "O")
    if rng.random() < 0.4:
        words += [str(rng.choice([5, 10, 20, 50, 100])), "mg"]
        tags += ["DOSE", "DOSE"] if tag != "O" else ["O", "O"]
    return words, tags


def write_note(rng):
    words, tags = ["HISTORY"], ["O"]
    for section, most in (("PAST", 4), ("PLAN", 6)):
        if section == "PLAN":
            words.append("PLAN")
            tags.append("O")
        for _ in range(rng.randint(0, most)):
            k = rng.randint(1, 5)
            words += [rng.choice(FILLERS) for _ in range(k)]
            tags += ["O"] * k
            w, t = mention(rng, section)
            words += w
            tags += t
        words.append(rng.choice(FILLERS))
        tags.append("O")
    return words, tags


def paraphrase(note, rng):
    words = [rng.choice(FILLERS) if w in FILLERS and rng.random() < 0.5 else w for w in note[0]]
    return words, list(note[1])


def encode(notes, vocab):
    return [(torch.tensor([vocab.get(w, UNK) for w in ws]), torch.tensor([TAGS.index(t) for t in ts])) for ws, ts in notes]


def collate(batch):
    x = pad_sequence([b[0] for b in batch], batch_first=True, padding_value=PAD)
    y = pad_sequence([b[1] for b in batch], batch_first=True, padding_value=IGNORE)
    return x, y


class Tagger(nn.Module):
    def __init__(self, vocab_size: int, dim: int = 32, hidden: int = 32):
        super().__init__()
        self.emb = nn.Embedding(vocab_size, dim, padding_idx=PAD)
        self.drop = nn.Dropout(0.25)
        self.rnn = nn.GRU(dim, hidden, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * hidden, len(TAGS))

    def forward(self, x):
        h, _ = self.rnn(self.drop(self.emb(x)))
        return self.out(self.drop(h))


def counts(pred, y):
    keep = y != IGNORE
    p, t = pred[keep], y[keep]
    tp = ((p == t) & (t > 0)).sum().item()
    fp = ((p > 0) & (p != t)).sum().item()
    fn = ((t > 0) & (p != t)).sum().item()
    return tp, fp, fn, (p == t).sum().item(), len(t)


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    tp = fp = fn = hit = n = 0
    for x, y in loader:
        a, b, c, h, k = counts(model(x).argmax(-1), y)
        tp, fp, fn, hit, n = tp + a, fp + b, fn + c, hit + h, n + k
    return 2 * tp / max(2 * tp + fp + fn, 1), hit / n


def main():
    rng = random.Random(5)
    torch.manual_seed(5)
    notes = [write_note(rng) for _ in range(640)]
    rng.shuffle(notes)
    val_notes, train_notes = notes[:130], notes[130:]
    train_notes = train_notes + [paraphrase(n, rng) for n in train_notes for _ in range(2)]
    # longest first: little padding per batch
    val_notes.sort(key=lambda n: -len(n[0]))

    freq = Counter(w for ws, _ in train_notes for w in ws)
    vocab = {w: i + 2 for i, (w, _) in enumerate(freq.most_common())}
    train_loader = DataLoader(encode(train_notes, vocab), batch_size=48, shuffle=True, collate_fn=collate)
    val_loader = DataLoader(encode(val_notes, vocab), batch_size=64, collate_fn=collate)
    print(f"train {len(train_notes)} val {len(val_notes)} vocab {len(vocab) + 2}")

    model = Tagger(len(vocab) + 2)
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    ce = nn.CrossEntropyLoss(ignore_index=IGNORE)
    for epoch in range(6):
        model.train()
        losses = []
        for x, y in train_loader:
            loss = ce(model(x).flatten(0, 1), y.flatten())
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            opt.step()
            losses.append(loss.item())
        f1, acc = evaluate(model, val_loader)
        print(f"epoch {epoch} loss {np.mean(losses):.4f} val token acc {acc:.4f} val mention F1 {f1:.4f}")


if __name__ == "__main__":
    main()
