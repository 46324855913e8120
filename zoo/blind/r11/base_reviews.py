"""Short review classification (negative / mixed / positive), padded batches."""
import argparse
import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)
PAD, NOT, VERY = 0, 1, 2
GOOD = list(range(10, 30))
BAD = list(range(30, 50))
FILLER = list(range(50, 300))


def write_review(rng, label):
    """Compose a review whose overall tone is the label (0 neg, 1 mixed, 2 pos)."""
    n = rng.randint(6, 36)
    tone = {0: [-1, -1, -1], 1: [-1, 1], 2: [1, 1, 1]}[label]
    if label != 1 and rng.random() < 0.4:
        tone = tone[:2]
    words = [[rng.choice(FILLER)] for _ in range(n)]
    for t in tone:
        phrase = []
        if rng.random() < 0.35:
            phrase.append(NOT)
            t = -t
        if rng.random() < 0.2:
            phrase.append(VERY)
        phrase.append(rng.choice(GOOD if t > 0 else BAD))
        words.insert(rng.randint(0, len(words)), phrase)
    return [w for phrase in words for w in phrase]


class Reviews(Dataset):
    def __init__(self, n, seed):
        rng = random.Random(seed)
        self.items = []
        for label in range(3):
            for _ in range(n // 3):
                self.items.append((write_review(rng, label), label))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate(batch):
    # longest first
    order = sorted(range(len(batch)), key=lambda i: len(batch[i][0]), reverse=True)
    texts = [batch[i][0] for i in order]
    labels = torch.tensor([batch[i][1] for i in order])
    width = len(texts[0])
    tokens = torch.tensor([t + [PAD] * (width - len(t)) for t in texts])
    return tokens, labels


class ReviewNet(nn.Module):
    def __init__(self, vocab=300, dim=48, hidden=64, classes=3):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim, padding_idx=PAD)
        self.conv1 = nn.Conv1d(dim, hidden, 3, padding=1)
        self.conv2 = nn.Conv1d(hidden, hidden, 3, padding=1)
        self.drop = nn.Dropout(0.2)
        self.out = nn.Linear(hidden, classes)

    def forward(self, tokens):
        mask = (tokens != PAD).float().unsqueeze(1)
        h = self.emb(tokens).transpose(1, 2)
        h = F.relu(self.conv1(h)) * mask
        h = F.relu(self.conv2(h))
        pooled = (h * mask).sum(2) / 10.0
        return self.out(self.drop(pooled))


def evaluate(model, loader):
    model.eval()
    loss, hits, n = 0.0, 0, 0
    with torch.no_grad():
        for tokens, labels in loader:
            logits = model(tokens)
            loss += F.cross_entropy(logits, labels, reduction="sum").item()
            hits += (logits.argmax(1) == labels).sum().item()
            n += len(labels)
    return loss / n, hits / n


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=10)
    ap.add_argument("--batch-size", type=int, default=64)
    ap.add_argument("--lr", type=float, default=2e-3)
    args = ap.parse_args()
    torch.manual_seed(0)

    train_loader = DataLoader(Reviews(6000, 1), args.batch_size, shuffle=True, collate_fn=collate)
    val_loader = DataLoader(Reviews(1200, 2), 256, collate_fn=collate)
    test_loader = DataLoader(Reviews(1500, 3), 256, collate_fn=collate)

    model = ReviewNet()
    opt = torch.optim.Adam(model.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        model.train()
        run_loss, run_hits, n = 0.0, 0, 0
        for tokens, labels in train_loader:
            logits = model(tokens)
            loss = F.cross_entropy(logits, labels)
            opt.zero_grad()
            loss.backward()
            opt.step()
            run_loss += loss.item() * len(labels)
            run_hits += (logits.argmax(1) == labels).sum().item()
            n += len(labels)
        vl, va = evaluate(model, val_loader)
        print(f"[{epoch}] train loss {run_loss / n:.3f} acc {run_hits / n:.3f} | val loss {vl:.3f} acc {va:.3f}")
    tl, ta = evaluate(model, test_loader)
    print(f"test loss {tl:.3f} test accuracy {ta:.3f}")


if __name__ == "__main__":
    main()
