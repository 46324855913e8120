"""Normalise dates written by people ("Tue, 3rd of March 1987") to ISO 8601.

Characters in, characters out: a bidirectional GRU reads the string, a GRU cell
with additive attention writes the answer. The score is the share of strings
whose whole answer is right when the model writes on its own.
"""
import datetime as dt
import random
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F

PAD, BOS, EOS = 0, 1, 2


@dataclass
class Config:
    n_train: int = 4000
    n_val: int = 300
    n_test: int = 400
    emb: int = 32
    hidden: int = 64
    batch: int = 100
    epochs: int = 4
    lr: float = 4e-3
    clip: float = 1.0
    max_out: int = 12
    seed: int = 3


MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August",
          "September", "October", "November", "December"]


def ordinal(n):
    return f"{n}{'th' if 10 <= n % 100 <= 20 else {1: 'st', 2: 'nd', 3: 'rd'}.get(n % 10, 'th')}"


def write_date(d, rng):
    """One of the ways in which our correspondents write a date."""
    month = MONTHS[d.month - 1]
    style = rng.randrange(8)
    if style == 0:
        return f"{d.day} {month} {d.year}"
    if style == 1:
        return f"{month} {ordinal(d.day)}, {d.year}"
    if style == 2:
        return f"{month[:3].upper()} {d.day} {d.year}"
    if style == 3:
        return f"{d:%a}, {d.day}-{month[:3]}-{d.year}"
    if style == 4:
        return f"{d.day}.{d.month}.{d.year}"                 # continental offices
    if style == 5:
        return f"{d.month:02d}/{d.day:02d}/{d.year}"         # American offices
    if style == 6:
        return f"{d.day:02d}-{d.month:02d}-{d.year}"         # the Indian branch
    return f"the {ordinal(d.day)} of {month.lower()} {d.year}"


def make_pairs(cfg):
    rng = random.Random(11)
    first, last = dt.date(1930, 1, 1).toordinal(), dt.date(2029, 12, 31).toordinal()
    days = rng.sample(range(first, last + 1), cfg.n_train + cfg.n_val + cfg.n_test)
    pairs = []
    for n in days:
        d = dt.date.fromordinal(n)
        pairs.append((write_date(d, rng), d.isoformat()))
    a, b = cfg.n_train, cfg.n_train + cfg.n_val
    return pairs[:a], pairs[a:b], pairs[b:]


class Vocabulary:
    def __init__(self, texts):
        self.chars = sorted(set("".join(texts)))
        self.index = {c: i + 3 for i, c in enumerate(self.chars)}

    def __len__(self):
        return len(self.chars) + 3

    def encode(self, text):
        return [BOS] + [self.index[c] for c in text] + [EOS]

    def decode(self, ids):
        out = []
        for i in ids:
            if i == EOS:
                break
            out.append(self.chars[i - 3] if i >= 3 else "?")
        return "".join(out)


def pad(rows):
    width = max(map(len, rows))
    return torch.tensor([r + [PAD] * (width - len(r)) for r in rows])


def batches(pairs, src_vocab, tgt_vocab, size, rng=None):
    order = list(range(len(pairs)))
    if rng is not None:
        rng.shuffle(order)
    for i in range(0, len(order), size):
        chosen = [pairs[j] for j in order[i:i + size]]
        yield (pad([src_vocab.encode(s) for s, _ in chosen]),
               pad([tgt_vocab.encode(t) for _, t in chosen]), [t for _, t in chosen])


class Encoder(nn.Module):
    def __init__(self, n_chars, emb, hidden):
        super().__init__()
        self.embed = nn.Embedding(n_chars, emb, padding_idx=PAD)
        self.gru = nn.GRU(emb, hidden, batch_first=True, bidirectional=True)
        self.bridge = nn.Linear(2 * hidden, hidden)

    def forward(self, src):
        lengths = (src != PAD).sum(1)
        packed = nn.utils.rnn.pack_padded_sequence(self.embed(src), lengths, batch_first=True,
                                                   enforce_sorted=False)
        memory, last = self.gru(packed)
        memory, _ = nn.utils.rnn.pad_packed_sequence(memory, batch_first=True)
        state = torch.tanh(self.bridge(torch.cat([last[0], last[1]], dim=1)))
        return memory, state


class Decoder(nn.Module):
    def __init__(self, n_chars, emb, hidden):
        super().__init__()
        self.embed = nn.Embedding(n_chars, emb, padding_idx=PAD)
        self.query = nn.Linear(hidden, hidden)
        self.key = nn.Linear(2 * hidden, hidden)
        self.energy = nn.Linear(hidden, 1, bias=False)
        self.cell = nn.GRUCell(emb + 2 * hidden, hidden)
        self.out = nn.Linear(3 * hidden, n_chars)

    def step(self, token, state, memory, keys, mask):
        e = self.energy(torch.tanh(keys + self.query(state)[:, None])).squeeze(2)
        weights = F.softmax(e.masked_fill(mask, float("-inf")), dim=1)
        context = torch.bmm(weights[:, None], memory)[:, 0]
        state = self.cell(torch.cat([self.embed(token), context], dim=1), state)
        return self.out(torch.cat([state, context], dim=1)), state


class Normaliser(nn.Module):
    def __init__(self, n_src, n_tgt, cfg):
        super().__init__()
        self.encoder = Encoder(n_src, cfg.emb, cfg.hidden)
        self.decoder = Decoder(n_tgt, cfg.emb, cfg.hidden)

    def forward(self, src, tgt_in):
        memory, state = self.encoder(src)
        keys, mask = self.decoder.key(memory), src == PAD
        logits = []
        for t in range(tgt_in.shape[1]):
            step, state = self.decoder.step(tgt_in[:, t], state, memory, keys, mask)
            logits.append(step)
        return torch.stack(logits, dim=1)

    @torch.no_grad()
    def write(self, src, max_out):
        memory, state = self.encoder(src)
        keys, mask = self.decoder.key(memory), src == PAD
        token, out = torch.full((len(src),), BOS), []
        for _ in range(max_out):
            logits, state = self.decoder.step(token, state, memory, keys, mask)
            token = logits.argmax(1)
            out.append(token)
        return torch.stack(out, dim=1).tolist()


def sequence_loss(model, src, tgt):
    inputs, wanted = tgt[:, :-1], tgt[:, 1:]
    logits = model(src, inputs)
    return F.cross_entropy(logits.flatten(0, 1), wanted.flatten(), ignore_index=PAD)


@torch.no_grad()
def evaluate(model, pairs, vocabs, cfg):
    model.eval()
    loss, right, n = 0.0, 0, 0
    for src, tgt, texts in batches(pairs, *vocabs, size=250):
        loss += sequence_loss(model, src, tgt).item() * len(texts)
        written = [vocabs[1].decode(ids) for ids in model.write(src, cfg.max_out)]
        right += sum(w == t for w, t in zip(written, texts))
        n += len(texts)
    return loss / n, right / n


def main(cfg):
    torch.set_num_threads(1)
    torch.manual_seed(cfg.seed)
    rng = random.Random(cfg.seed)
    train, val, test = make_pairs(cfg)
    vocabs = Vocabulary([s for s, _ in train]), Vocabulary([t for _, t in train])
    model = Normaliser(len(vocabs[0]), len(vocabs[1]), cfg)
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=3, gamma=0.3)
    print(f"{len(train)} pairs, e.g. {train[0]}")

    for epoch in range(1, cfg.epochs + 1):
        model.train()
        total, norms, steps = 0.0, 0.0, 0
        for src, tgt, _ in batches(train, *vocabs, size=cfg.batch, rng=rng):
            optimizer.zero_grad()
            loss = sequence_loss(model, src, tgt)
            loss.backward()
            norms += nn.utils.clip_grad_norm_(model.parameters(), cfg.clip).item()
            optimizer.step()
            total += loss.item()
            steps += 1
        schedule.step()
        val_loss, exact = evaluate(model, val, vocabs, cfg)
        print(f"epoch {epoch} train loss {total / steps:.4f} grad norm {norms / steps:.2f} "
              f"val loss {val_loss:.4f} val exact {exact:.3f}")

    test_loss, exact = evaluate(model, test, vocabs, cfg)
    for text, answer in test[:4]:
        src = pad([vocabs[0].encode(text)])
        print(f"  {text!r} -> {vocabs[1].decode(model.write(src, cfg.max_out)[0])} ({answer})")
    print(f"test loss {test_loss:.4f} test exact {exact:.3f}")


if __name__ == "__main__":
    main(Config())
