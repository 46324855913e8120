# Word-level LSTM language model with truncated BPTT (WikiText-2 style text files).
import argparse
import math
import os
import time
from collections import Counter

import torch
import torch.nn as nn


class Corpus:
    def __init__(self, path, min_count=2):
        words = self.read(os.path.join(path, "train.txt"))
        counts = Counter(words)
        self.vocab = ["<unk>"] + sorted(w for w, c in counts.items() if c >= min_count and w != "<unk>")
        self.index = {w: i for i, w in enumerate(self.vocab)}
        self.train = self.encode(words)
        self.valid = self.encode(self.read(os.path.join(path, "valid.txt")))
        self.test = self.encode(self.read(os.path.join(path, "test.txt")))

    @staticmethod
    def read(name):
        words = []
        with open(name, encoding="utf-8") as f:
            for line in f:
                words += line.split() + ["<eos>"]
        return words

    def encode(self, words):
        return torch.tensor([self.index.get(w, 0) for w in words], dtype=torch.long)


def batchify(ids, batch_size, device):
    n = ids.size(0) // batch_size
    return ids[:n * batch_size].view(batch_size, n).t().contiguous().to(device)


def get_chunk(source, i, bptt):
    length = min(bptt, source.size(0) - 1 - i)
    return source[i:i + length], source[i + 1:i + 1 + length].reshape(-1)


class RNNModel(nn.Module):
    def __init__(self, vocab, emb, hidden, layers, dropout):
        super().__init__()
        self.layers, self.hidden = layers, hidden
        self.drop = nn.Dropout(dropout)
        self.encoder = nn.Embedding(vocab, emb)
        self.rnn = nn.LSTM(emb, hidden, layers, dropout=dropout)
        self.decoder = nn.Linear(hidden, vocab)
        nn.init.uniform_(self.encoder.weight, -0.1, 0.1)
        nn.init.uniform_(self.decoder.weight, -0.1, 0.1)
        nn.init.zeros_(self.decoder.bias)

    def forward(self, x, state):
        out, state = self.rnn(self.drop(self.encoder(x)), state)
        logits = self.decoder(self.drop(out))
        return logits.view(-1, logits.size(-1)), state

    def init_state(self, batch_size):
        w = next(self.parameters())
        return (w.new_zeros(self.layers, batch_size, self.hidden),
                w.new_zeros(self.layers, batch_size, self.hidden))


def detach_state(state):
    return tuple(s.detach() for s in state)


def evaluate(model, source, bptt, criterion):
    model.eval()
    total = 0.0
    state = model.init_state(source.size(1))
    with torch.no_grad():
        for i in range(0, source.size(0) - 1, bptt):
            x, y = get_chunk(source, i, bptt)
            logits, state = model(x, state)
            total += x.size(0) * criterion(logits, y).item()
    return total / (source.size(0) - 1)


def train_epoch(model, source, args, optimizer, criterion, epoch):
    model.train()
    total, start = 0.0, time.time()
    state = model.init_state(source.size(1))
    for n, i in enumerate(range(0, source.size(0) - 1, args.bptt), start=1):
        x, y = get_chunk(source, i, args.bptt)
        state = detach_state(state)
        optimizer.zero_grad()
        logits, state = model(x, state)
        loss = criterion(logits, y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), args.clip)
        optimizer.step()
        total += loss.item()
        if n % args.log_every == 0:
            mean = total / args.log_every
            print(f"epoch {epoch} chunk {n} lr {optimizer.param_groups[0]['lr']:.3f} "
                  f"loss {mean:.3f} ppl {math.exp(mean):.1f} {time.time() - start:.0f}s")
            total = 0.0


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--data", default="wikitext-2")
    p.add_argument("--emb", type=int, default=400)
    p.add_argument("--hidden", type=int, default=400)
    p.add_argument("--layers", type=int, default=2)
    p.add_argument("--dropout", type=float, default=0.4)
    p.add_argument("--lr", type=float, default=20.0)
    p.add_argument("--clip", type=float, default=0.25)
    p.add_argument("--bptt", type=int, default=35)
    p.add_argument("--batch_size", type=int, default=20)
    p.add_argument("--epochs", type=int, default=40)
    p.add_argument("--log_every", type=int, default=200)
    p.add_argument("--seed", type=int, default=1111)
    p.add_argument("--save", default="lstm_lm.pt")
    args = p.parse_args()

    torch.manual_seed(args.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    corpus = Corpus(args.data)
    train_data = batchify(corpus.train, args.batch_size, device)
    valid_data = batchify(corpus.valid, 10, device)
    test_data = batchify(corpus.test, 10, device)

    model = RNNModel(len(corpus.vocab), args.emb, args.hidden, args.layers, args.dropout).to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
    best = float("inf")
    for epoch in range(1, args.epochs + 1):
        train_epoch(model, train_data, args, optimizer, criterion, epoch)
        val_loss = evaluate(model, valid_data, args.bptt, criterion)
        print(f"epoch {epoch} valid loss {val_loss:.3f} ppl {math.exp(val_loss):.1f}")
        if val_loss < best:
            best = val_loss
            torch.save(model.state_dict(), args.save)
        else:
            for group in optimizer.param_groups:
                group["lr"] /= 4.0

    model.load_state_dict(torch.load(args.save, map_location=device))
    test_loss = evaluate(model, test_data, args.bptt, criterion)
    print(f"test loss {test_loss:.3f} ppl {math.exp(test_loss):.1f}")


if __name__ == "__main__":
    main()
