import argparse
import math
import random

import torch
import torch.nn as nn
from torch.nn import functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=220)
parser.add_argument("--batch", type=int, default=24)
parser.add_argument("--block", type=int, default=19)
parser.add_argument("--dim", type=int, default=48)
parser.add_argument("--heads", type=int, default=4)
parser.add_argument("--lr", type=float, default=5e-3)
args = parser.parse_args()

torch.manual_seed(1337)
random.seed(1337)

# little ledger: every entry is written twice on its line
names = ["figs", "kiwi", "plum", "pear", "lime", "date"]
lines = []
for _ in range(1500):
    entry = f"{random.choice(names)}={random.randint(100, 999)};"
    lines.append(entry + entry + "\n")
text = "".join(lines)
width = len(lines[0])
chars = sorted(set(text))
stoi = {c: i for i, c in enumerate(chars)}
itos = {i: c for c, i in stoi.items()}
data = torch.tensor([stoi[c] for c in text])
cut = int(0.9 * len(lines)) * width
splits = {"train": data[:cut], "val": data[cut:]}


def get_batch(split, n=args.batch):
    d = splits[split]
    ix = torch.randint(1, len(d) // width - 1, (n,)) * width - 1      # each row starts at the line break
    x = torch.stack([d[i:i + args.block] for i in ix])
    y = torch.stack([d[i + 1:i + 1 + args.block] for i in ix])
    return x, y


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)
        self.register_buffer("mask", torch.tril(torch.ones(args.block, args.block)).bool())

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.qkv(x).split(C, dim=2)
        q, k, v = [t.view(B, T, self.heads, C // self.heads).transpose(1, 2) for t in (q, k, v)]
        att = q @ k.transpose(-2, -1) / math.sqrt(C // self.heads)
        att = att.masked_fill(~self.mask[:T, :T], float("-inf"))
        out = F.softmax(att, dim=-1) @ v
        return self.proj(out.transpose(1, 2).reshape(B, T, C))


class Layer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = Attention(dim, heads)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class GPT(nn.Module):
    def __init__(self, vocab, dim, heads):
        super().__init__()
        self.tok = nn.Embedding(vocab, dim)
        self.pos = nn.Embedding(args.block, dim)
        self.layers = nn.ModuleList([Layer(dim, heads) for _ in range(2)])
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, vocab, bias=False)

    def forward(self, idx):
        x = self.tok(idx) + self.pos(torch.arange(idx.shape[1]))
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


model = GPT(len(chars), args.dim, args.heads)
opt = torch.optim.AdamW(model.parameters(), lr=args.lr, betas=(0.9, 0.98), weight_decay=0.01)


def schedule(step):
    warmup = 30
    if step < warmup:
        return (step + 1) / warmup
    return 0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * (step - warmup) / (args.steps - warmup)))


sched = torch.optim.lr_scheduler.LambdaLR(opt, schedule)

for step in range(args.steps + 1):
    if step % 44 == 0:
        model.eval()
        with torch.no_grad():
            xv, yv = get_batch("val", 100)
            val = F.cross_entropy(model(xv).flatten(0, 1), yv.flatten()).item()
        model.train()
        print(f"step {step:4d} | val loss {val:.4f}")
    x, y = get_batch("train")
    loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
    opt.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
    sched.step()
    if step % 44 == 0:
        print(f"step {step:4d} | train loss {loss.item():.4f}")

model.eval()
idx = torch.full((20, 1), stoi["\n"])
with torch.no_grad():
    for _ in range(19):
        probs = F.softmax(model(idx[:, -args.block:])[:, -1], dim=-1)
        idx = torch.cat([idx, torch.multinomial(probs, 1)], dim=1)
samples = ["".join(itos[i] for i in row.tolist()) for row in idx]
good = sum(s.strip().split(";")[0] == (s.strip().split(";") + [""])[1] for s in samples)
print("sample:", samples[0].strip().replace("\n", " / "))
print(f"samples that repeat their entry: {good}/20")
