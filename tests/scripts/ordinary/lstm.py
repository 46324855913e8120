"""Word-level language model with an LSTM, truncated backpropagation through time."""

import hashlib
import json
import math
import os
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(1111)

ntokens = 20
bptt = 16
clip = 0.25
lr = 0.02


def markov_text(length, transition):
    token, text = 0, []
    for _ in range(length):
        text.append(token)
        token = int(torch.multinomial(transition[token], 1))
    return torch.tensor(text)


def batchify(data, bsz):
    nbatch = data.size(0) // bsz
    return data[: nbatch * bsz].view(bsz, -1).t().contiguous()


def get_batch(source, i):
    seq_len = min(bptt, len(source) - 1 - i)
    return source[i : i + seq_len], source[i + 1 : i + 1 + seq_len].view(-1)


def repackage_hidden(h):
    """Wrap hidden states in new tensors, to detach them from their history."""
    if isinstance(h, torch.Tensor):
        return h.detach()
    return tuple(repackage_hidden(v) for v in h)


class RNNModel(nn.Module):
    def __init__(self, ntoken, ninp, nhid, nlayers):
        super().__init__()
        self.ntoken, self.nhid, self.nlayers = ntoken, nhid, nlayers
        self.drop = nn.Dropout(0.1)
        self.encoder = nn.Embedding(ntoken, ninp)
        self.rnn = nn.LSTM(ninp, nhid, nlayers)
        self.decoder = nn.Linear(nhid, ntoken)

    def forward(self, tokens, hidden):
        output, hidden = self.rnn(self.drop(self.encoder(tokens)), hidden)
        return self.decoder(self.drop(output)).view(-1, self.ntoken), hidden

    def init_hidden(self, bsz):
        weight = next(self.parameters())
        return (
            weight.new_zeros(self.nlayers, bsz, self.nhid),
            weight.new_zeros(self.nlayers, bsz, self.nhid),
        )


transition = torch.softmax(6 * torch.randn(ntokens, ntokens), dim=1)
train_data = batchify(markov_text(5000, transition), 16)
val_data = batchify(markov_text(800, transition), 8)

model = RNNModel(ntokens, 32, 48, 2)
optimizer = torch.optim.Adam(model.parameters(), lr=lr)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.8)
history = {"loss": [], "val_loss": [], "grad_norm": [], "lr": []}


def evaluate(data_source):
    model.eval()
    total_loss = 0.0
    hidden = model.init_hidden(data_source.size(1))
    with torch.no_grad():
        for i in range(0, data_source.size(0) - 1, bptt):
            data, targets = get_batch(data_source, i)
            output, hidden = model(data, hidden)
            hidden = repackage_hidden(hidden)
            total_loss += len(data) * F.cross_entropy(output, targets).item()
    return total_loss / (len(data_source) - 1)


def train():
    model.train()
    hidden = model.init_hidden(train_data.size(1))
    for i in range(0, train_data.size(0) - 1, bptt):
        data, targets = get_batch(train_data, i)
        model.zero_grad()
        hidden = repackage_hidden(hidden)
        output, hidden = model(data, hidden)
        loss = F.cross_entropy(output, targets)
        loss.backward()
        norm = torch.sqrt(sum(p.grad.pow(2).sum() for p in model.parameters()))
        torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        history["loss"].append(loss.item())
        history["grad_norm"].append(norm.item())
        history["lr"].append(scheduler.get_last_lr()[0])


for epoch in range(1, 5):
    train()
    val_loss = evaluate(val_data)
    history["val_loss"].append([len(history["loss"]), val_loss])
    scheduler.step()
    print("-" * 60)
    print(f"| epoch {epoch:2d} | valid loss {val_loss:5.2f} | valid ppl {math.exp(val_loss):8.2f}")

if "HISTORY" in os.environ:
    weights = b"".join(v.numpy().tobytes() for v in model.state_dict().values())
    history["weights"] = hashlib.sha256(weights).hexdigest()
    Path(os.environ["HISTORY"]).write_text(json.dumps(history))
