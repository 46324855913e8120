"""Seq2seq with attention: human readable dates -> ISO dates, greedy and beam decoding."""
import datetime
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

PAD, SOS, EOS = 0, 1, 2
FORMATS = ["%d %B %Y", "%B %d, %Y", "%A %d %b %Y", "%d.%m.%Y", "%b %d %y"]
ALPHABET = sorted(set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 ,.-"))
CHAR2ID = {c: i + 3 for i, c in enumerate(ALPHABET)}
ID2CHAR = {i: c for c, i in CHAR2ID.items()}
VOCAB = len(ALPHABET) + 3
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def make_pairs(n, rng):
    first, last = datetime.date(1970, 1, 1).toordinal(), datetime.date(2035, 12, 31).toordinal()
    pairs = []
    for ordinal in rng.sample(range(first, last), n):
        day = datetime.date.fromordinal(ordinal)
        pairs.append((day.strftime(rng.choice(FORMATS)), day.isoformat()))
    return pairs


def to_batch(pairs):
    src = [[CHAR2ID[c] for c in s] for s, _ in pairs]
    tgt = [[SOS] + [CHAR2ID[c] for c in t] + [EOS] for _, t in pairs]

    def pad(rows):
        width = max(map(len, rows))
        return torch.tensor([r + [PAD] * (width - len(r)) for r in rows], device=DEVICE)
    return pad(src), pad(tgt)


class Encoder(nn.Module):
    def __init__(self, emb, hidden):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, emb, padding_idx=PAD)
        self.gru = nn.GRU(emb, hidden, batch_first=True, bidirectional=True)
        self.bridge = nn.Linear(2 * hidden, hidden)

    def forward(self, src):
        lengths = (src != PAD).sum(1).cpu()
        packed = nn.utils.rnn.pack_padded_sequence(self.emb(src), lengths, batch_first=True, enforce_sorted=False)
        out, h = self.gru(packed)
        out, _ = nn.utils.rnn.pad_packed_sequence(out, batch_first=True)
        return out, torch.tanh(self.bridge(torch.cat([h[0], h[1]], dim=-1)))


class Decoder(nn.Module):
    def __init__(self, emb, hidden):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, emb, padding_idx=PAD)
        self.cell = nn.GRUCell(emb + 2 * hidden, hidden)
        self.query = nn.Linear(hidden, 2 * hidden, bias=False)
        self.out = nn.Linear(3 * hidden, VOCAB)

    def forward(self, token, h, memory, mask):
        scores = torch.bmm(memory, self.query(h).unsqueeze(2)).squeeze(2)
        weights = scores.masked_fill(~mask, -1e9).softmax(dim=1)
        context = (weights.unsqueeze(2) * memory).sum(dim=1)
        h = self.cell(torch.cat([self.emb(token), context], dim=1), h)
        return self.out(torch.cat([h, context], dim=1)), h


def train_step(encoder, decoder, optimizer, src, tgt, teacher_forcing):
    encoder.train()
    decoder.train()
    (memory, h), mask = encoder(src), src != PAD
    token, steps = tgt[:, 0], []
    for t in range(1, tgt.size(1)):
        logits, h = decoder(token, h, memory, mask)
        steps.append(logits)
        token = tgt[:, t] if random.random() < teacher_forcing else logits.argmax(1)
    logits = torch.stack(steps, dim=1)
    loss = F.cross_entropy(logits.reshape(-1, VOCAB), tgt[:, 1:].reshape(-1), ignore_index=PAD)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(list(encoder.parameters()) + list(decoder.parameters()), 1.0)
    optimizer.step()
    return loss.item()


def text(ids):
    chars = []
    for i in ids:
        if i == EOS:
            break
        chars.append(ID2CHAR.get(i, ""))
    return "".join(chars)


@torch.no_grad()
def greedy(encoder, decoder, src, max_len=14):
    memory, h = encoder(src)
    mask = src != PAD
    token = torch.full((src.size(0),), SOS, device=DEVICE)
    out = []
    for _ in range(max_len):
        logits, h = decoder(token, h, memory, mask)
        token = logits.argmax(1)
        out.append(token)
    return [text(row) for row in torch.stack(out, dim=1).tolist()]


@torch.no_grad()
def beam(encoder, decoder, src, width=4, max_len=14):
    """src holds one sentence."""
    memory, h = encoder(src)
    mask = src != PAD
    beams, done = [([SOS], 0.0, h)], []
    for _ in range(max_len):
        candidates = []
        for ids, score, h in beams:
            logits, h_new = decoder(torch.tensor([ids[-1]], device=DEVICE), h, memory, mask)
            values, tokens = logits.log_softmax(1)[0].topk(width)
            for v, tok in zip(values.tolist(), tokens.tolist()):
                candidates.append((ids + [tok], score + v, h_new))
        candidates.sort(key=lambda c: c[1], reverse=True)
        beams = []
        for c in candidates[:width]:
            (done if c[0][-1] == EOS else beams).append(c)
        if not beams:
            break
    best = max(done or beams, key=lambda c: c[1] / (len(c[0]) - 1))
    return text(best[0][1:])


def main():
    rng = random.Random(3)
    random.seed(3)
    torch.manual_seed(3)
    pairs = make_pairs(12000, rng)
    train, val = pairs[:11000], pairs[11000:]
    encoder, decoder = Encoder(48, 128).to(DEVICE), Decoder(48, 128).to(DEVICE)
    optimizer = torch.optim.Adam(list(encoder.parameters()) + list(decoder.parameters()), lr=1e-3)
    best = -1.0
    for epoch in range(20):
        rng.shuffle(train)
        teacher_forcing = max(0.5, 1.0 - 0.05 * epoch)
        losses = [train_step(encoder, decoder, optimizer, *to_batch(train[i:i + 64]), teacher_forcing)
                  for i in range(0, len(train), 64)]
        encoder.eval()
        decoder.eval()
        hits = 0
        for i in range(0, len(val), 200):
            part = val[i:i + 200]
            hits += sum(p == t for p, (_, t) in zip(greedy(encoder, decoder, to_batch(part)[0]), part))
        print(f"{epoch}: loss {sum(losses) / len(losses):.4f} exact match {hits / len(val):.3f}")
        if hits / len(val) > best:
            best = hits / len(val)
            torch.save({"encoder": encoder.state_dict(), "decoder": decoder.state_dict()}, "dates.pt")
    for s, t in val[:5]:
        print(s, "->", beam(encoder, decoder, to_batch([(s, t)])[0]), "|", t)


if __name__ == "__main__":
    main()
