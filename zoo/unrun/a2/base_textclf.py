"""Sentiment classification: padded batches, BiGRU, masked attention pooling."""
import csv
import random
from collections import Counter

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from torch.utils.data import DataLoader

CONFIG = {
    "csv": "reviews.csv",          # columns: text,label (label in 0..n_classes-1)
    "n_classes": 3,
    "max_len": 200,
    "min_freq": 3,
    "emb": 128,
    "hidden": 128,
    "dropout": 0.3,
    "batch_size": 64,
    "epochs": 12,
    "lr": 2e-3,
    "patience": 3,
    "seed": 7,
}
PAD, UNK = 0, 1


def set_seed(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def load_rows(path):
    with open(path, newline="", encoding="utf-8") as f:
        return [(r["text"].lower().split(), int(r["label"])) for r in csv.DictReader(f) if r["text"].strip()]


def split_rows(rows, val_frac=0.1):
    rows = list(rows)
    random.shuffle(rows)
    n_val = int(len(rows) * val_frac)
    return rows[n_val:], rows[:n_val]


def build_vocab(rows, min_freq):
    counts = Counter(t for tokens, _ in rows for t in tokens)
    vocab = {"<pad>": PAD, "<unk>": UNK}
    for token, c in counts.most_common():
        if c >= min_freq:
            vocab[token] = len(vocab)
    return vocab


def make_collate(vocab, max_len):
    def collate(batch):
        seqs = [[vocab.get(t, UNK) for t in tokens[:max_len]] for tokens, _ in batch]
        lengths = torch.tensor([len(s) for s in seqs])
        ids = torch.full((len(seqs), int(lengths.max())), PAD, dtype=torch.long)
        for i, s in enumerate(seqs):
            ids[i, :len(s)] = torch.tensor(s)
        return ids, lengths, torch.tensor([label for _, label in batch])
    return collate


class AttentionClassifier(nn.Module):
    def __init__(self, vocab_size, emb, hidden, n_classes, dropout):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, emb, padding_idx=PAD)
        self.gru = nn.GRU(emb, hidden, batch_first=True, bidirectional=True)
        self.score = nn.Sequential(nn.Linear(2 * hidden, hidden), nn.Tanh(), nn.Linear(hidden, 1))
        self.dropout = nn.Dropout(dropout)
        self.out = nn.Linear(2 * hidden, n_classes)

    def forward(self, ids, lengths):
        x = self.dropout(self.embed(ids))
        packed = pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
        h, _ = pad_packed_sequence(self.gru(packed)[0], batch_first=True)
        scores = self.score(h).squeeze(-1)
        scores = scores.masked_fill(ids == PAD, float("-inf"))
        alpha = torch.softmax(scores, dim=1)
        pooled = torch.bmm(alpha.unsqueeze(1), h).squeeze(1)
        return self.out(self.dropout(pooled))


def class_weights(rows, n_classes):
    counts = torch.bincount(torch.tensor([y for _, y in rows]), minlength=n_classes).float()
    return counts.sum() / (n_classes * counts)


def train_one_epoch(model, loader, criterion, optimizer, device):
    model.train()
    total, n = 0.0, 0
    for ids, lengths, y in loader:
        ids, y = ids.to(device), y.to(device)
        optimizer.zero_grad()
        loss = criterion(model(ids, lengths), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        total += loss.item() * y.size(0)
        n += y.size(0)
    return total / n


@torch.no_grad()
def evaluate(model, loader, n_classes, device):
    model.eval()
    confusion = torch.zeros(n_classes, n_classes)
    for ids, lengths, y in loader:
        pred = model(ids.to(device), lengths).argmax(dim=1).cpu()
        for t, p in zip(y, pred):
            confusion[t, p] += 1
    tp = confusion.diag()
    precision = tp / confusion.sum(dim=0).clamp(min=1)
    recall = tp / confusion.sum(dim=1).clamp(min=1)
    f1 = 2 * precision * recall / (precision + recall).clamp(min=1e-8)
    return (tp.sum() / confusion.sum()).item(), f1.mean().item()


def main(cfg):
    set_seed(cfg["seed"])
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train_rows, val_rows = split_rows(load_rows(cfg["csv"]))
    vocab = build_vocab(train_rows, cfg["min_freq"])
    collate = make_collate(vocab, cfg["max_len"])
    train_loader = DataLoader(train_rows, cfg["batch_size"], shuffle=True, collate_fn=collate)
    val_loader = DataLoader(val_rows, 256, collate_fn=collate)

    model = AttentionClassifier(len(vocab), cfg["emb"], cfg["hidden"], cfg["n_classes"], cfg["dropout"]).to(device)
    criterion = nn.CrossEntropyLoss(weight=class_weights(train_rows, cfg["n_classes"]).to(device))
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg["lr"])
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode="max", factor=0.5, patience=1)

    best, bad_epochs = 0.0, 0
    for epoch in range(cfg["epochs"]):
        loss = train_one_epoch(model, train_loader, criterion, optimizer, device)
        acc, f1 = evaluate(model, val_loader, cfg["n_classes"], device)
        scheduler.step(f1)
        print(f"epoch {epoch}: loss {loss:.4f} val acc {acc:.4f} macro-F1 {f1:.4f}")
        if f1 > best:
            best, bad_epochs = f1, 0
            torch.save({"model": model.state_dict(), "vocab": vocab, "config": cfg}, "textclf.pt")
        else:
            bad_epochs += 1
            if bad_epochs >= cfg["patience"]:
                break
    print("best macro-F1", best)


if __name__ == "__main__":
    main(CONFIG)
