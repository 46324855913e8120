"""CTC recognition of digit strings from synthetic filter-bank-like frames."""
import argparse
import random

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

BLANK = 0
SYMBOLS = "0123456789"
N_MELS = 40


class SpokenDigits(Dataset):
    """Each digit is a spectral template held for 6-14 frames, with pauses and noise."""

    def __init__(self, n, seed, templates, max_digits=8):
        rng = random.Random(seed)
        self.strings = ["".join(rng.choice(SYMBOLS) for _ in range(rng.randint(1, max_digits))) for _ in range(n)]
        self.seeds = [rng.randrange(2 ** 31) for _ in range(n)]
        self.templates = templates

    def __len__(self):
        return len(self.strings)

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(self.seeds[i])
        frames = [torch.zeros(4, N_MELS)]
        for c in self.strings[i]:
            n = int(torch.randint(6, 15, (1,), generator=g))
            pause = int(torch.randint(3, 6, (1,), generator=g))
            frames += [self.templates[int(c)].expand(n, -1), torch.zeros(pause, N_MELS)]
        x = torch.cat(frames)
        x = x + 0.5 * torch.randn(x.shape, generator=g)
        return x, torch.tensor([SYMBOLS.index(c) + 1 for c in self.strings[i]])


def collate(batch):
    xs, ys = zip(*batch)
    x_len = torch.tensor([len(x) for x in xs])
    y_len = torch.tensor([len(y) for y in ys])
    return nn.utils.rnn.pad_sequence(xs, batch_first=True), torch.cat(ys), x_len, y_len


class Recogniser(nn.Module):
    def __init__(self, hidden=128):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv1d(N_MELS, hidden, 5, stride=2, padding=2), nn.ReLU(),
                                  nn.Conv1d(hidden, hidden, 3, padding=1), nn.ReLU())
        self.norm = nn.LayerNorm(hidden)
        self.rnn = nn.GRU(hidden, hidden, 2, batch_first=True, bidirectional=True, dropout=0.1)
        self.out = nn.Linear(2 * hidden, len(SYMBOLS) + 1)

    def forward(self, x, x_len):
        h = self.conv(x.transpose(1, 2)).transpose(1, 2)
        h_len = (x_len - 1) // 2 + 1
        packed = nn.utils.rnn.pack_padded_sequence(self.norm(h), h_len, batch_first=True, enforce_sorted=False)
        h, _ = nn.utils.rnn.pad_packed_sequence(self.rnn(packed)[0], batch_first=True)
        return self.out(h).log_softmax(dim=-1), h_len


def greedy_decode(log_probs, lengths):
    texts = []
    for row, n in zip(log_probs.argmax(-1).tolist(), lengths.tolist()):
        out, previous = [], BLANK
        for s in row[:n]:
            if s != previous and s != BLANK:
                out.append(SYMBOLS[s - 1])
            previous = s
        texts.append("".join(out))
    return texts


def edit_distance(a, b):
    row = list(range(len(b) + 1))
    for i, ca in enumerate(a, 1):
        diagonal, row[0] = row[0], i
        for j, cb in enumerate(b, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (ca != cb))
    return row[-1]


@torch.no_grad()
def evaluate(model, loader, device):
    model.eval()
    errors = symbols = exact = n = 0
    for x, y, x_len, y_len in loader:
        log_probs, h_len = model(x.to(device), x_len)
        hyps = greedy_decode(log_probs, h_len)
        refs = ["".join(SYMBOLS[i - 1] for i in part.tolist()) for part in y.split(y_len.tolist())]
        for hyp, ref in zip(hyps, refs):
            errors += edit_distance(hyp, ref)
            symbols += len(ref)
            exact += hyp == ref
            n += 1
    return errors / symbols, exact / n


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=15)
    ap.add_argument("--batch-size", type=int, default=32)
    ap.add_argument("--lr", type=float, default=1e-3)
    ap.add_argument("--seed", type=int, default=0)
    ap.add_argument("--out", default="ctc.pt")
    args = ap.parse_args()

    torch.manual_seed(args.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    templates = torch.randn(len(SYMBOLS), N_MELS)
    train_loader = DataLoader(SpokenDigits(8000, 1, templates), args.batch_size, shuffle=True, collate_fn=collate)
    val_loader = DataLoader(SpokenDigits(800, 2, templates), 64, collate_fn=collate)

    model = Recogniser().to(device)
    ctc = nn.CTCLoss(blank=BLANK, zero_infinity=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=args.lr, epochs=args.epochs,
                                                    steps_per_epoch=len(train_loader))
    best = float("inf")
    for epoch in range(args.epochs):
        model.train()
        total = 0.0
        for x, y, x_len, y_len in train_loader:
            log_probs, h_len = model(x.to(device), x_len)
            loss = ctc(log_probs.transpose(0, 1), y.to(device), h_len, y_len)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            scheduler.step()
            total += loss.item()
        cer, exact = evaluate(model, val_loader, device)
        print(f"epoch {epoch} loss {total / len(train_loader):.4f} CER {cer:.4f} exact {exact:.4f}")
        if cer < best:
            best = cer
            torch.save(model.state_dict(), args.out)


if __name__ == "__main__":
    main()
