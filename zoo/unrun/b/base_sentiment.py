import csv
import random
import re
from collections import Counter

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader

PAD, UNK = 0, 1
MAX_LEN = 300
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def read_reviews(path):
    rows = []
    with open(path, newline="", encoding="utf-8") as f:
        for row in csv.DictReader(f):
            rows.append((row["review"], 1 if row["sentiment"] == "positive" else 0))
    return rows


def tokenize(text):
    text = re.sub(r"<br\s*/?>", " ", text.lower())
    return re.findall(r"[a-z0-9']+", text)


def split_rows(rows, seed=13):
    rows = list(dict.fromkeys(rows))
    random.Random(seed).shuffle(rows)
    n = len(rows)
    return rows[: int(0.8 * n)], rows[int(0.8 * n): int(0.9 * n)], rows[int(0.9 * n):]


def build_vocab(rows, size=20000, min_count=3):
    counts = Counter(tok for text, _ in rows for tok in tokenize(text))
    words = [w for w, c in counts.most_common(size) if c >= min_count]
    return {w: i + 2 for i, w in enumerate(words)}


def encode(rows, vocab):
    data = []
    for text, label in rows:
        ids = [vocab.get(t, UNK) for t in tokenize(text)][:MAX_LEN]
        data.append((torch.tensor(ids or [UNK]), label))
    return data


def collate(batch):
    seqs, labels = zip(*batch)
    lengths = torch.tensor([len(s) for s in seqs])
    return pad_sequence(seqs, batch_first=True, padding_value=PAD), lengths, torch.tensor(labels).float()


class SentimentLSTM(nn.Module):
    def __init__(self, n_words, emb=128, hidden=256, p=0.4):
        super().__init__()
        self.emb = nn.Embedding(n_words, emb, padding_idx=PAD)
        self.lstm = nn.LSTM(emb, hidden, batch_first=True, bidirectional=True)
        self.drop = nn.Dropout(p)
        self.out = nn.Linear(2 * hidden, 1)

    def forward(self, x, lengths):
        e = self.drop(self.emb(x))
        packed = pack_padded_sequence(e, lengths, batch_first=True, enforce_sorted=False)
        _, (h, _) = self.lstm(packed)
        h = torch.cat([h[-2], h[-1]], dim=1)
        return self.out(self.drop(h)).squeeze(1)


def train_epoch(model, loader, criterion, optimizer):
    model.train()
    total, n = 0.0, 0
    for x, lengths, y in loader:
        x, y = x.to(DEVICE), y.to(DEVICE)
        optimizer.zero_grad()
        loss = criterion(model(x, lengths), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.item() * len(y)
        n += len(y)
    return total / n


def evaluate(model, loader, criterion):
    model.eval()
    total, correct, n = 0.0, 0, 0
    with torch.no_grad():
        for x, lengths, y in loader:
            x, y = x.to(DEVICE), y.to(DEVICE)
            logits = model(x, lengths)
            total += criterion(logits, y).item() * len(y)
            correct += ((logits > 0).float() == y).sum().item()
            n += len(y)
    return total / n, correct / n


def main():
    torch.manual_seed(13)
    train_rows, val_rows, test_rows = split_rows(read_reviews("imdb.csv"))
    vocab = build_vocab(train_rows)
    train_loader = DataLoader(encode(train_rows, vocab), batch_size=64, shuffle=True, collate_fn=collate)
    val_loader = DataLoader(encode(val_rows, vocab), batch_size=128, collate_fn=collate)
    test_loader = DataLoader(encode(test_rows, vocab), batch_size=128, collate_fn=collate)

    model = SentimentLSTM(len(vocab) + 2).to(DEVICE)
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode="min", factor=0.5, patience=1)

    best_loss, bad_epochs = float("inf"), 0
    for epoch in range(20):
        train_loss = train_epoch(model, train_loader, criterion, optimizer)
        val_loss, val_acc = evaluate(model, val_loader, criterion)
        scheduler.step(val_loss)
        print(f"{epoch:2d} train {train_loss:.4f} val {val_loss:.4f} acc {val_acc:.4f}")
        if val_loss < best_loss:
            best_loss, bad_epochs = val_loss, 0
            torch.save({"model": model.state_dict(), "vocab": vocab}, "sentiment.pt")
        else:
            bad_epochs += 1
            if bad_epochs >= 4:
                break

    model.load_state_dict(torch.load("sentiment.pt", map_location=DEVICE)["model"])
    test_loss, test_acc = evaluate(model, test_loader, criterion)
    print(f"test loss {test_loss:.4f} acc {test_acc:.4f}")


if __name__ == "__main__":
    main()
