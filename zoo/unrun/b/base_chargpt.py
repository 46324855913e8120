"""A small character-level GPT on a plain text file."""
import math
import os
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class GPTConfig:
    vocab: int = 0
    block: int = 256
    layers: int = 6
    heads: int = 6
    dim: int = 384
    drop: float = 0.2


class Attention(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.heads = cfg.heads
        self.qkv = nn.Linear(cfg.dim, 3 * cfg.dim, bias=False)
        self.proj, self.drop = nn.Linear(cfg.dim, cfg.dim), nn.Dropout(cfg.drop)
        self.register_buffer("mask", torch.tril(torch.ones(cfg.block, cfg.block, dtype=torch.bool)))

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        att = (q @ k.transpose(-2, -1)) / math.sqrt(q.size(-1))
        att = att.masked_fill(~self.mask[:t, :t], float("-inf"))
        att = self.drop(F.softmax(att, dim=-1))
        y = (att @ v).transpose(1, 2).reshape(b, t, c)
        return self.drop(self.proj(y))


class Block(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(cfg.dim), nn.LayerNorm(cfg.dim)
        self.att = Attention(cfg)
        self.mlp = nn.Sequential(nn.Linear(cfg.dim, 4 * cfg.dim), nn.GELU(),
                                 nn.Linear(4 * cfg.dim, cfg.dim), nn.Dropout(cfg.drop))

    def forward(self, x):
        x = x + self.att(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class GPT(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.tok, self.pos = nn.Embedding(cfg.vocab, cfg.dim), nn.Embedding(cfg.block, cfg.dim)
        self.blocks = nn.ModuleList([Block(cfg) for _ in range(cfg.layers)])
        self.ln = nn.LayerNorm(cfg.dim)
        self.head = nn.Linear(cfg.dim, cfg.vocab, bias=False)
        for p in self.parameters():
            if p.ndim > 1:
                nn.init.normal_(p, std=0.02)

    def forward(self, idx):
        x = self.tok(idx) + self.pos(torch.arange(idx.size(1), device=idx.device))
        for blk in self.blocks:
            x = blk(x)
        return self.head(self.ln(x))

    @torch.no_grad()
    def generate(self, idx, n, temperature=0.8):
        self.eval()
        for _ in range(n):
            logits = self(idx[:, -self.cfg.block:])[:, -1] / temperature
            idx = torch.cat([idx, torch.multinomial(F.softmax(logits, dim=-1), 1)], dim=1)
        return idx


torch.manual_seed(1337)
device = "cuda" if torch.cuda.is_available() else "cpu"
batch, accum, steps, warmup, eval_every, lr, min_lr = 32, 2, 5000, 200, 250, 1e-3, 1e-4
text = open("input.txt", encoding="utf-8").read()
chars = sorted(set(text))
stoi = {c: i for i, c in enumerate(chars)}
data = torch.tensor([stoi[c] for c in text])
cut = int(0.9 * len(data))
train_data, val_data = data[:cut], data[cut:]
cfg = GPTConfig(vocab=len(chars))


def get_batch(source):
    start = torch.randint(len(source) - cfg.block, (batch,))
    x = torch.stack([source[s:s + cfg.block] for s in start])
    y = torch.stack([source[s + 1:s + 1 + cfg.block] for s in start])
    return x.to(device), y.to(device)


def lm_loss(model, x, y):
    return F.cross_entropy(model(x).flatten(0, 1), y.flatten())


@torch.no_grad()
def val_loss(model, rounds=100):
    model.eval()
    total = sum(lm_loss(model, *get_batch(val_data)).item() for _ in range(rounds))
    model.train()
    return total / rounds


def lr_at(step):
    cosine = 0.5 * (1 + math.cos(math.pi * (step - warmup) / (steps - warmup)))
    return lr * (step + 1) / warmup if step < warmup else min_lr + (lr - min_lr) * cosine


model = GPT(cfg).to(device)
opt = torch.optim.AdamW(model.parameters(), lr=lr, betas=(0.9, 0.99), weight_decay=0.1)
start, best = 0, float("inf")
if os.path.exists("gpt.pt"):
    ck = torch.load("gpt.pt", map_location=device)
    model.load_state_dict(ck["model"])
    opt.load_state_dict(ck["opt"])
    start, best = ck["step"] + 1, ck["best"]
model.train()
for step in range(start, steps):
    for g in opt.param_groups:
        g["lr"] = lr_at(step)
    opt.zero_grad(set_to_none=True)
    for _ in range(accum):
        loss = lm_loss(model, *get_batch(train_data)) / accum
        loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
    if step % eval_every == 0 or step == steps - 1:
        v = val_loss(model)
        print(f"step {step} train {loss.item() * accum:.4f} val {v:.4f} ppl {math.exp(v):.2f}")
        if v < best:
            best = v
            torch.save({"model": model.state_dict(), "opt": opt.state_dict(), "step": step, "best": best}, "gpt.pt")
out = model.generate(torch.tensor([[stoi["\n"]]], device=device), 500)
print("".join(chars[i] for i in out[0].tolist()))
