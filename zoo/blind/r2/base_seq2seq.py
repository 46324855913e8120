# reverse a string of digits with a GRU encoder/decoder and dot-product attention
import random
import torch
import torch.nn as nn
import torch.nn.functional as F

PAD, BOS, EOS = 0, 1, 2
VOCAB = 3 + 8
MAXLEN = 6
HID = 64


def make_batch(n, rng):
    src = torch.full((n, MAXLEN), PAD)
    tgt = torch.full((n, MAXLEN + 2), PAD)
    for i in range(n):
        length = rng.randint(3, MAXLEN)
        seq = [rng.randint(3, VOCAB - 1) for _ in range(length)]
        src[i, :length] = torch.tensor(seq)
        tgt[i, :length + 2] = torch.tensor([BOS] + seq[::-1] + [EOS])
    return src, tgt


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, 32, padding_idx=PAD)
        self.rnn = nn.GRU(32, HID // 2, batch_first=True, bidirectional=True)

    def forward(self, src):
        out, h = self.rnn(self.emb(src))
        return out, torch.cat([h[0], h[1]], dim=1).unsqueeze(0)


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, 32, padding_idx=PAD)
        self.rnn = nn.GRU(32, HID, batch_first=True)
        self.query = nn.Linear(HID, HID)
        self.mix = nn.Linear(2 * HID, HID)
        self.out = nn.Linear(HID, VOCAB)

    def forward(self, tokens, h, memory, src_mask):
        y, h = self.rnn(self.emb(tokens), h)
        scores = self.query(y) @ memory.transpose(1, 2) / HID ** 0.5
        scores = scores.masked_fill(~src_mask[:, None, :], -1e9)
        attn = F.softmax(scores, dim=-1)
        ctx = attn @ memory
        return self.out(torch.tanh(self.mix(torch.cat([y, ctx], dim=-1)))), h


@torch.no_grad()
def exact_match(enc, dec, src, tgt):
    memory, h = enc(src)
    tok = torch.full((src.size(0), 1), BOS)
    done = torch.zeros(src.size(0), dtype=torch.bool)
    outs = []
    for _ in range(MAXLEN + 1):
        logits, h = dec(tok, h, memory, src != PAD)
        tok = logits.argmax(-1)
        outs.append(torch.where(done, torch.tensor(PAD), tok[:, 0]))
        done |= tok[:, 0] == EOS
    pred = torch.stack(outs, 1)
    gold = tgt[:, 1:]
    real = gold != PAD
    return (pred == gold).all(1).float().mean().item(), (pred == gold)[real].float().mean().item()


def train():
    torch.manual_seed(3)
    rng = random.Random(3)
    enc, dec = Encoder(), Decoder()
    params = list(enc.parameters()) + list(dec.parameters())
    optimizer = torch.optim.Adam(params, lr=8e-3)
    pool_src, pool_tgt = make_batch(1200, rng)
    val_src, val_tgt = make_batch(100, rng)
    for it in range(1, 141):
        idx = torch.randint(0, len(pool_src), (48,))
        src, tgt = pool_src[idx], pool_tgt[idx]
        memory, h = enc(src)
        logits, _ = dec(tgt[:, :-1], h, memory, src != PAD)
        loss = F.cross_entropy(logits.reshape(-1, VOCAB), tgt[:, 1:].reshape(-1), ignore_index=PAD)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(params, 1.0)
        optimizer.step()
        if it % 28 == 0:
            em, tok = exact_match(enc, dec, val_src, val_tgt)
            print(f"iter {it} loss {loss.item():.3f} | greedy: exact {em:.3f} token {tok:.3f}")


train()
