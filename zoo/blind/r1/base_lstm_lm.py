#!/usr/bin/env python
import argparse
import torch
import torch.nn as nn

parser = argparse.ArgumentParser(description="character LSTM, truncated BPTT")
parser.add_argument("--bptt", type=int, default=16)
parser.add_argument("--batch-size", type=int, default=20)
parser.add_argument("--hidden", type=int, default=64)
parser.add_argument("--lr", type=float, default=8.0)
parser.add_argument("--clip", type=float, default=0.5)
parser.add_argument("--epochs", type=int, default=6)
parser.add_argument("--seed", type=int, default=1111)
args = parser.parse_args()
torch.manual_seed(args.seed)

PHRASES = ["the cat sat on the mat. ", "a dog ran over the hill. ", "we like green tea. ",
           "rain falls in the night. ", "old trains go slow. ", "she sang a quiet song. "]
g = torch.Generator().manual_seed(7)
text = "".join(PHRASES[i] for i in torch.randint(0, len(PHRASES), (1300,), generator=g))
vocab = sorted(set(text))
ids = torch.tensor([vocab.index(c) for c in text])


def batchify(seq, bsz):
    n = seq.size(0) // bsz
    return seq[:n * bsz].view(bsz, n)          # (batch, time)


split = int(len(ids) * 0.85)
train_data, val_data = batchify(ids[:split], args.batch_size), batchify(ids[split:], args.batch_size)


class CharLSTM(nn.Module):
    def __init__(self, ntok, nhid):
        super().__init__()
        self.encoder = nn.Embedding(ntok, 24)
        self.rnn = nn.LSTM(24, nhid, batch_first=True)
        self.decoder = nn.Linear(nhid, ntok)
        nn.init.uniform_(self.encoder.weight, -0.1, 0.1)

    def forward(self, x, hidden):
        out, hidden = self.rnn(self.encoder(x), hidden)
        return self.decoder(out), hidden


def repackage(h):
    return tuple(s.detach() for s in h)


model = CharLSTM(len(vocab), args.hidden)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)


def evaluate(data):
    model.eval()
    hidden, total, count = None, 0.0, 0
    with torch.no_grad():
        for i in range(0, data.size(1) - args.bptt - 1, args.bptt):
            x, y = data[:, i:i + args.bptt], data[:, i + 1:i + 1 + args.bptt]
            out, hidden = model(x, hidden)
            total += criterion(out.reshape(-1, len(vocab)), y.reshape(-1)).item()
            count += 1
    return total / count


for epoch in range(1, args.epochs + 1):
    model.train()
    hidden, total, steps = None, 0.0, 0
    for i in range(0, train_data.size(1) - args.bptt - 1, args.bptt):
        x = train_data[:, i:i + args.bptt]
        y = train_data[:, i + 1:i + 1 + args.bptt]
        if hidden is not None:
            hidden = repackage(hidden)
        optimizer.zero_grad()
        out, hidden = model(x, hidden)
        loss = criterion(out.reshape(-1, len(vocab)), y.reshape(-1))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), args.clip)
        optimizer.step()
        total += loss.item()
        steps += 1
    print("| epoch %d | steps %d | train loss %.3f | valid loss %.3f" % (epoch, steps, total / steps, evaluate(val_data)))
