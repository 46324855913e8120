# Transliteration of romanised words into a made-up script, GRU encoder-decoder with attention
import random
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence, pack_padded_sequence, pad_packed_sequence

SEED = 11
random.seed(SEED)
torch.manual_seed(SEED)

PAD, SOS, EOS = 0, 1, 2
ONSETS = ["b", "d", "g", "k", "l", "m", "n", "p", "r", "s", "t", "v", "sh", "ch", "th", "kh"]
VOWELS = ["a", "e", "i", "o", "u", "ai"]
CODAS = ["", "", "n", "r", "s", "l"]
GLYPH = {o: chr(0x10D0 + i) for i, o in enumerate(ONSETS)}
INITIAL_V = {v: chr(0x0531 + i) for i, v in enumerate(VOWELS)}
MEDIAL_V = {v: chr(0x0561 + i) for i, v in enumerate(VOWELS)}
VIRAMA = "\u094d"


def make_pair(rng):
    src, tgt = "", ""
    if rng.random() < 0.35:
        v = rng.choice(VOWELS)
        src, tgt = v, INITIAL_V[v]
    for _ in range(rng.randint(1, 3)):
        o, v, c = rng.choice(ONSETS), rng.choice(VOWELS), rng.choice(CODAS)
        src += o + v + c
        # the vowel sign of "i" is written before its consonant
        tgt += MEDIAL_V[v] + GLYPH[o] if v == "i" else GLYPH[o] + MEDIAL_V[v]
        if c:
            tgt += GLYPH[c] + VIRAMA
    return src, tgt


rng = random.Random(SEED)
pairs = set()
while len(pairs) < 3600:
    pairs.add(make_pair(rng))
pairs = sorted(pairs)
rng.shuffle(pairs)
train_pairs, val_pairs = pairs[:3200], pairs[3200:]


class CharVocab:
    def __init__(self, words):
        self.itos = ["<pad>", "<sos>", "<eos>"] + sorted({c for w in words for c in w})
        self.stoi = {c: i for i, c in enumerate(self.itos)}

    def __len__(self):
        return len(self.itos)

    def encode(self, w):
        return [self.stoi[c] for c in w]

    def decode(self, ids):
        out = []
        for i in ids:
            if i == EOS:
                break
            out.append(self.itos[i])
        return "".join(out)


sv, tv = CharVocab([s for s, _ in pairs]), CharVocab([t for _, t in pairs])


def collate(batch):
    src = [torch.tensor(sv.encode(s)) for s, _ in batch]
    tgt = [torch.tensor([SOS] + tv.encode(t) + [EOS]) for _, t in batch]
    lens = torch.tensor([len(s) for s in src])
    return pad_sequence(src, True, PAD), lens, pad_sequence(tgt, True, PAD)


class Encoder(nn.Module):
    def __init__(self, n, emb, hid):
        super().__init__()
        self.emb = nn.Embedding(n, emb, padding_idx=PAD)
        self.rnn = nn.GRU(emb, hid // 2, batch_first=True, bidirectional=True)

    def forward(self, x, lens):
        packed = pack_padded_sequence(self.emb(x), lens, batch_first=True, enforce_sorted=False)
        out, h = self.rnn(packed)
        out, _ = pad_packed_sequence(out, batch_first=True)
        return out, torch.cat([h[0], h[1]], dim=-1)


class Attention(nn.Module):
    def __init__(self, hid):
        super().__init__()
        self.proj = nn.Linear(hid, hid, bias=False)

    def forward(self, query, memory, mask):
        scores = torch.bmm(self.proj(memory), query.unsqueeze(2)).squeeze(2) / query.size(-1) ** 0.5
        scores = scores.masked_fill(~mask, -1e9)
        weights = F.softmax(scores, dim=1)
        return torch.bmm(weights.unsqueeze(1), memory).squeeze(1)


class Decoder(nn.Module):
    def __init__(self, n, emb, hid):
        super().__init__()
        self.emb = nn.Embedding(n, emb, padding_idx=PAD)
        self.cell = nn.GRUCell(emb + hid, hid)
        self.attn = Attention(hid)
        self.out = nn.Linear(2 * hid, n)

    def forward(self, tok, h, ctx, memory, mask):
        h = self.cell(torch.cat([self.emb(tok), ctx], dim=-1), h)
        ctx = self.attn(h, memory, mask)
        logits = self.out(torch.cat([h, ctx], dim=-1))
        return logits, h, ctx


class Seq2Seq(nn.Module):
    def __init__(self, emb=32, hid=64):
        super().__init__()
        self.enc = Encoder(len(sv), emb, hid)
        self.dec = Decoder(len(tv), emb, hid)

    def forward(self, src, lens, tgt_in):
        memory, h = self.enc(src, lens)
        mask = src != PAD
        ctx = torch.zeros_like(h)
        outs = []
        for t in range(tgt_in.size(1)):
            logits, h, ctx = self.dec(tgt_in[:, t], h, ctx, memory, mask)
            outs.append(logits)
        return torch.stack(outs, dim=1)

    @torch.no_grad()
    def greedy(self, src, lens, max_len=20):
        memory, h = self.enc(src, lens)
        mask = src != PAD
        ctx = torch.zeros_like(h)
        tok = torch.full((src.size(0),), SOS)
        out = []
        for _ in range(max_len):
            logits, h, ctx = self.dec(tok, h, ctx, memory, mask)
            tok = logits.argmax(-1)
            out.append(tok)
        return torch.stack(out, dim=1)


model = Seq2Seq()
criterion = nn.CrossEntropyLoss(ignore_index=PAD)
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
BATCH, EPOCHS = 48, 5


def batches(data, shuffle):
    idx = list(range(len(data)))
    if shuffle:
        random.shuffle(idx)
    for i in range(0, len(idx), BATCH):
        yield collate([data[j] for j in idx[i:i + BATCH]])


def split_target(tgt):
    return tgt[:, :-1], tgt[:, 1:]


def compute_loss(src, lens, tgt):
    tgt_in, tgt_out = split_target(tgt)
    logits = model(src, lens, tgt_in)
    return criterion(logits.reshape(-1, logits.size(-1)), tgt_out.reshape(-1))


t0 = time.time()
for epoch in range(1, EPOCHS + 1):
    model.train()
    tr, nb = 0.0, 0
    for src, lens, tgt in batches(train_pairs, True):
        loss = compute_loss(src, lens, tgt)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        tr += loss.item()
        nb += 1
    model.eval()
    va, vb, exact, total = 0.0, 0, 0, 0
    with torch.no_grad():
        for src, lens, tgt in batches(val_pairs, False):
            va += compute_loss(src, lens, tgt).item()
            vb += 1
            hyp = model.greedy(src, lens)
            for h, r in zip(hyp.tolist(), tgt[:, 1:].tolist()):
                exact += tv.decode(h) == tv.decode(r)
                total += 1
    print(f"[{time.time() - t0:5.1f}s] epoch {epoch} train {tr / nb:.4f} val {va / vb:.4f} exact match {exact / total:.3f}")

for s, t in val_pairs[:5]:
    src, lens, _ = collate([(s, t)])
    print(s, "->", tv.decode(model.greedy(src, lens)[0].tolist()), "| ref", t)
