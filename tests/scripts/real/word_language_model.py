"""A word-level LSTM language model, trained with SGD at a learning rate of 20."""

import argparse
import math

import torch
import torch.nn as nn

parser = argparse.ArgumentParser(description="RNN language model")
parser.add_argument("--emsize", type=int, default=48)
parser.add_argument("--nhid", type=int, default=48)
parser.add_argument("--lr", type=float, default=20)
parser.add_argument("--clip", type=float, default=0.25)
parser.add_argument("--epochs", type=int, default=5)
parser.add_argument("--batch_size", type=int, default=20)
parser.add_argument("--bptt", type=int, default=20)
parser.add_argument("--dropout", type=float, default=0.1)
parser.add_argument("--seed", type=int, default=1111)
parser.add_argument("--log-interval", type=int, default=10)
parser.add_argument("--fault", default="")
args = parser.parse_args()

torch.manual_seed(args.seed)
NTOKENS = 200


def corpus(length, generator):
    """Each word is followed by one of four; a few words are much more frequent than the others."""
    drawn = torch.rand(NTOKENS, 4, generator=torch.Generator().manual_seed(3))
    follows = (NTOKENS * drawn**4).long()
    choices = torch.randint(0, 4, (length,), generator=generator)
    words = [0]
    for choice in choices.tolist():
        words.append(follows[words[-1], choice].item())
    return torch.tensor(words)


def batchify(data, bsz):
    nbatch = data.size(0) // bsz
    return data.narrow(0, 0, nbatch * bsz).view(bsz, -1).t().contiguous()


generator = torch.Generator().manual_seed(5)
train_data = batchify(corpus(20000, generator), args.batch_size)
val_data = batchify(corpus(3000, generator), 10)
test_data = batchify(corpus(3000, generator), 10)


class RNNModel(nn.Module):
    def __init__(self, ntoken, ninp, nhid, nlayers, dropout):
        super().__init__()
        self.drop = nn.Dropout(dropout)
        self.encoder = nn.Embedding(ntoken, ninp)
        self.rnn = nn.LSTM(ninp, nhid, nlayers, dropout=dropout)
        self.decoder = nn.Linear(nhid, ntoken)
        self.nhid, self.nlayers, self.ntoken = nhid, nlayers, ntoken
        nn.init.uniform_(self.encoder.weight, -0.1, 0.1)
        nn.init.zeros_(self.decoder.bias)
        nn.init.uniform_(self.decoder.weight, -0.1, 0.1)

    def forward(self, words, hidden):
        emb = self.drop(self.encoder(words))
        output, hidden = self.rnn(emb, hidden)
        decoded = self.decoder(self.drop(output)).view(-1, self.ntoken)
        return nn.functional.log_softmax(decoded, dim=1), hidden

    def init_hidden(self, bsz):
        weight = next(self.parameters())
        shape = (self.nlayers, bsz, self.nhid)
        return weight.new_zeros(shape), weight.new_zeros(shape)


model = RNNModel(NTOKENS, args.emsize, args.nhid, 2, args.dropout)
criterion = nn.NLLLoss()
lr = args.lr


def repackage_hidden(h):
    return tuple(v.detach() for v in h)


def get_batch(source, i):
    seq_len = min(args.bptt, len(source) - 1 - i)
    data = source[i : i + seq_len]
    target = source[i + 1 : i + 1 + seq_len].reshape(-1)
    if args.fault == "targets-are-inputs":
        target = data.reshape(-1)
    return data, target


def evaluate(data_source):
    model.eval()
    total_loss = 0.0
    hidden = model.init_hidden(10)
    with torch.no_grad():
        for i in range(0, data_source.size(0) - 1, args.bptt):
            data, targets = get_batch(data_source, i)
            output, hidden = model(data, hidden)
            hidden = repackage_hidden(hidden)
            total_loss += len(data) * criterion(output, targets).item()
    return total_loss / (len(data_source) - 1)


def train(epoch):
    model.train()
    total_loss = 0.0
    hidden = model.init_hidden(args.batch_size)
    for batch, i in enumerate(range(0, train_data.size(0) - 1, args.bptt)):
        data, targets = get_batch(train_data, i)
        model.zero_grad()
        hidden = repackage_hidden(hidden)
        output, hidden = model(data, hidden)
        loss = criterion(output, targets)
        loss.backward()
        if args.fault != "no-clipping":
            torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
        optimizer.step()
        total_loss += loss.item()
        if (batch + 1) % args.log_interval == 0:
            cur_loss = total_loss / args.log_interval
            total = len(train_data) // args.bptt
            print(
                f"| epoch {epoch:3d} | {batch:5d}/{total:5d} batches | lr {lr:02.2f}"
                f" | loss {cur_loss} | ppl {math.exp(min(cur_loss, 700)):8.2f}"
            )
            total_loss = 0


best_val_loss = None
optimizer = torch.optim.SGD(model.parameters(), lr=lr)
for epoch in range(1, args.epochs + 1):
    train(epoch)
    val_loss = evaluate(val_data)
    print("-" * 60)
    print(f"| end of epoch {epoch:3d} | valid loss {val_loss}")
    print("-" * 60)
    if not best_val_loss or val_loss < best_val_loss:
        best_val_loss = val_loss
    else:  # anneal the learning rate if no improvement has been seen
        lr /= 4.0
        optimizer.param_groups[0]["lr"] = lr

test_loss = evaluate(test_data)
print("=" * 60)
print(f"| End of training | test loss {test_loss}")
