"""Decoder-only transformer on a small formal language: copy, reverse and sort sentences."""
import math
import random
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)


@dataclass
class Config:
    letters: int = 6
    min_len: int = 2
    max_len: int = 5
    d_model: int = 48
    n_head: int = 4
    n_layer: int = 2
    ctx: int = 128
    batch: int = 64
    steps: int = 500
    warmup: int = 50
    lr: float = 4e-3
    clip: float = 1.0
    seed: int = 11


cfg = Config()
PAD, BOS, EOS, BAR = 0, 1, 2, 3
COPY, REV, SORT = 4, 5, 6
FIRST = 7
VOCAB = FIRST + cfg.letters


def sentence(rng: random.Random):
    op = rng.choice([COPY, REV, SORT])
    w = [rng.randrange(cfg.letters) for _ in range(rng.randint(cfg.min_len, cfg.max_len))]
    out = {COPY: w, REV: w[::-1], SORT: sorted(w)}[op]
    prompt = [BOS, op] + [FIRST + c for c in w] + [BAR]
    return prompt, [FIRST + c for c in out] + [EOS]


def collate(pairs):
    seqs = [p + a for p, a in pairs]
    L = max(len(s) for s in seqs)
    t = torch.full((len(seqs), L), PAD)
    for i, s in enumerate(seqs):
        t[i, :len(s)] = torch.tensor(s)
    return t[:, :-1], t[:, 1:]


def sinusoid(n, d):
    pos = torch.arange(n).unsqueeze(1).float()
    div = torch.exp(torch.arange(0, d, 2).float() * (-math.log(10000.0) / d))
    pe = torch.zeros(n, d)
    pe[:, 0::2] = torch.sin(pos * div)
    pe[:, 1::2] = torch.cos(pos * div)
    return pe


class Attention(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h = h
        self.qkv = nn.Linear(d, 3 * d)
        self.proj = nn.Linear(d, d)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.qkv(x).view(B, T, 3, self.h, C // self.h).permute(2, 0, 3, 1, 4)
        att = q @ k.transpose(-2, -1) / math.sqrt(C // self.h)
        allowed = torch.ones(T, T, dtype=torch.bool).tril()
        att = att.masked_fill(~allowed, float("-inf")).softmax(-1)
        return self.proj((att @ v).transpose(1, 2).reshape(B, T, C))


class Block(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.attn = Attention(d, h)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x):
        x = x + self.attn(self.n1(x))
        return x + self.mlp(self.n2(x))


class TinyLM(nn.Module):
    def __init__(self, c: Config):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, c.d_model, padding_idx=PAD)
        self.register_buffer("pe", sinusoid(c.ctx, c.d_model))
        self.blocks = nn.ModuleList([Block(c.d_model, c.n_head) for _ in range(c.n_layer)])
        self.norm = nn.LayerNorm(c.d_model)
        self.head = nn.Linear(c.d_model, VOCAB, bias=False)

    def forward(self, idx):
        x = self.tok(idx)
        x = x + self.pe[:x.size(1)]
        for b in self.blocks:
            x = b(x)
        return self.head(self.norm(x)).float()


@torch.no_grad()
def evaluate(model, batches):
    model.eval()
    total, count = 0.0, 0
    for x, y in batches:
        logits = model(x)
        total += F.cross_entropy(logits.flatten(0, 1), y.flatten(), ignore_index=PAD, reduction="sum").item()
        count += (y != PAD).sum().item()
    model.train()
    return total / count


@torch.no_grad()
def exact_match(model, pairs):
    model.eval()
    right = 0
    by_len = {}
    for p, a in pairs:
        by_len.setdefault(len(p), []).append((p, a))
    for group in by_len.values():
        x = torch.tensor([p for p, _ in group])
        want = torch.tensor([a for _, a in group])
        for _ in range(want.size(1)):
            x = torch.cat([x, model(x)[:, -1].argmax(-1, keepdim=True)], 1)
        right += (x[:, -want.size(1):] == want).all(1).sum().item()
    model.train()
    return right / len(pairs)


def lr_at(step):
    if step < cfg.warmup:
        return cfg.lr * (step + 1) / cfg.warmup
    t = (step - cfg.warmup) / (cfg.steps - cfg.warmup)
    return cfg.lr * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * t)))


def main():
    random.seed(cfg.seed); np.random.seed(cfg.seed); torch.manual_seed(cfg.seed)
    train_rng, val_rng = random.Random(1), random.Random(2)
    val_pairs = [sentence(val_rng) for _ in range(256)]
    val_batches = [collate(val_pairs[i:i + 64]) for i in range(0, 256, 64)]

    model = TinyLM(cfg)
    print(f"parameters: {sum(p.numel() for p in model.parameters()) / 1e3:.1f}k  vocab {VOCAB}")
    opt = torch.optim.AdamW(model.parameters(), lr=cfg.lr, betas=(0.9, 0.98), weight_decay=0.01)
    run = None
    for step in range(cfg.steps):
        for g in opt.param_groups:
            g["lr"] = lr_at(step)
        x, y = collate([sentence(train_rng) for _ in range(cfg.batch)])
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten(), ignore_index=PAD)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), cfg.clip)
        opt.step()
        run = loss.item() if run is None else 0.95 * run + 0.05 * loss.item()
        if (step + 1) % 50 == 0:
            v = evaluate(model, val_batches)
            em = exact_match(model, val_pairs)
            print(f"step {step + 1:5d}  train {run:.3f}  val {v:.3f}  ppl {math.exp(v):.2f}  exact match {em:.3f}")


if __name__ == "__main__":
    main()
