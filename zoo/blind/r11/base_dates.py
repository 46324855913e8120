# Normalise written dates ("7 march 1998", "march 7, 1998", "07.03.98"...) to ISO with a
# GRU encoder / attention decoder. Teacher forcing in training, greedy decoding for the metric.
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)

MONTHS = ("january february march april may june july august september "
          "october november december").split()
SRC = {c: i + 1 for i, c in enumerate("abcdefghijklmnopqrstuvwxyz0123456789 ,./")}
TGT = {c: i + 3 for i, c in enumerate("0123456789-")}
PAD, BOS, EOS = 0, 1, 2
HIDDEN = 96
EPOCHS = 8
BATCH = 64


def example(rng):
    d, m, y = rng.randint(1, 28), rng.randint(1, 12), rng.randint(1980, 2029)
    style = rng.randrange(4)
    name = MONTHS[m - 1]
    if style == 0:
        s = f"{d} {name} {y}"
    elif style == 1:
        s = f"{name} {d}, {y}"
    elif style == 2:
        s = f"{d}.{m}.{y}"
    else:
        s = f"{name[:3]} {d} {y}"
    return s, f"{y}-{m:02d}-{d:02d}"


def tensorize(pairs):
    width = max(len(s) for s, _ in pairs)
    src = torch.tensor([[SRC[c] for c in s] + [PAD] * (width - len(s)) for s, _ in pairs])
    tgt = torch.tensor([[BOS] + [TGT[c] for c in t] + [EOS] for _, t in pairs])
    return src, tgt


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(len(SRC) + 1, 32, padding_idx=PAD)
        self.rnn = nn.GRU(32, HIDDEN // 2, batch_first=True, bidirectional=True)

    def forward(self, src):
        h, last = self.rnn(self.emb(src))
        return h, torch.cat([last[0], last[1]], 1).unsqueeze(0)


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(len(TGT) + 3, 32)
        self.rnn = nn.GRU(32, HIDDEN, batch_first=True)
        self.query = nn.Linear(HIDDEN, HIDDEN)
        self.out = nn.Linear(2 * HIDDEN, len(TGT) + 3)

    def forward(self, tokens, state, memory, mem_mask):
        h, state = self.rnn(self.emb(tokens), state)
        score = self.query(h) @ memory.transpose(1, 2) / HIDDEN ** 0.5
        score = score.masked_fill(mem_mask.unsqueeze(1), float("-inf"))
        ctx = F.softmax(score, -1) @ memory
        return self.out(torch.cat([h, ctx], -1)), state


def init_weights(module):
    for name, p in module.named_parameters():
        if p.dim() > 1:
            nn.init.xavier_uniform_(p)
        else:
            nn.init.zeros_(p)


def seq_loss(encoder, decoder, src, tgt):
    memory, state = encoder(src)
    logits, _ = decoder(tgt[:, :-1], state, memory, src == PAD)
    return F.cross_entropy(logits.transpose(1, 2), tgt[:, 1:])


@torch.no_grad()
def greedy(encoder, decoder, src, max_len=12):
    memory, state = encoder(src)
    tok = torch.full((len(src), 1), BOS)
    out = []
    for _ in range(max_len):
        logits, state = decoder(tok, state, memory, src == PAD)
        tok = logits[:, -1:].argmax(-1)
        out.append(tok)
    return torch.cat(out, 1)


def exact_match(encoder, decoder, src, tgt):
    want = tgt[:, 1:]
    hyp = greedy(encoder, decoder, src)[:, :want.size(1)]
    return (hyp == want).all(1).float().mean().item()


torch.manual_seed(5)
rng = random.Random(5)
seen = set()
pairs = []
while len(pairs) < 7000:
    p = example(rng)
    if p not in seen:
        seen.add(p)
        pairs.append(p)
src, tgt = tensorize(pairs)
src_train, tgt_train = src[:5500], tgt[:5500]
src_val, tgt_val = src[5500:6000], tgt[5500:6000]
src_test, tgt_test = src[6000:], tgt[6000:]

encoder, decoder = Encoder(), Decoder()
init_weights(encoder)
init_weights(decoder)
params = list(encoder.parameters()) + list(decoder.parameters())
opt = torch.optim.Adam(params, lr=4e-3)
sched = torch.optim.lr_scheduler.ExponentialLR(opt, 0.8)

for epoch in range(EPOCHS):
    order = torch.randperm(len(src_train))
    total = 0.0
    for i in range(0, len(order), BATCH):
        idx = order[i:i + BATCH]
        loss = seq_loss(encoder, decoder, src_train[idx], tgt_train[idx])
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(params, 1.0)
        opt.step()
        total += loss.item() * len(idx)
    sched.step()
    with torch.no_grad():
        vloss = seq_loss(encoder, decoder, src_val, tgt_val).item()
    em = exact_match(encoder, decoder, src_val, tgt_val)
    print(f"epoch {epoch + 1:2d} | train loss {total / len(order):.4f} | val loss {vloss:.4f} | val exact {em:.3f}")

print(f"test exact match {exact_match(encoder, decoder, src_test, tgt_test):.3f}")
