"""Tiny GPT over characters. Corpus: sentences from a small made-up grammar."""
import argparse
import math
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)

NOUNS = "fox river miller garden lantern captain winter bridge stone letter".split()
VERBS = "finds follows carries watches forgets mends".split()
ADJ = "quiet golden broken distant clever small".split()
WORDS = set(NOUNS + VERBS + ADJ + ["the", "a", "and"])


def make_corpus(n_sentences, seed):
    rng = random.Random(seed)
    def phrase():
        adj = rng.choice(ADJ) + " " if rng.random() < 0.5 else ""
        return rng.choice(["the ", "a "]) + adj + rng.choice(NOUNS)
    out = []
    for _ in range(n_sentences):
        s = phrase() + " " + rng.choice(VERBS) + " " + phrase()
        if rng.random() < 0.3:
            s += " and " + phrase()
        out.append(s + ". ")
    return "".join(out)


class Attention(nn.Module):
    def __init__(self, dim, heads, block):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)
        self.register_buffer("causal", torch.tril(torch.ones(block, block)).bool())

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.qkv(x).split(C, dim=2)
        q, k, v = [t.view(B, T, self.heads, C // self.heads).transpose(1, 2) for t in (q, k, v)]
        att = q @ k.transpose(-2, -1) / math.sqrt(C // self.heads)
        att = att.masked_fill(~self.causal[:T, :T], float("-inf"))
        att = F.softmax(att, dim=-1)
        y = (att @ v).transpose(1, 2).reshape(B, T, C)
        return self.proj(y)


class Block(nn.Module):
    def __init__(self, dim, heads, block):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.att = Attention(dim, heads, block)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        x = x + self.att(self.n1(x))
        return x + self.mlp(self.n2(x))


class GPT(nn.Module):
    def __init__(self, vocab, block, dim=64, heads=4, layers=2):
        super().__init__()
        self.block = block
        self.tok = nn.Embedding(vocab, dim)
        self.pos = nn.Embedding(block, dim)
        self.blocks = nn.ModuleList([Block(dim, heads, block) for _ in range(layers)])
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, vocab)

    def forward(self, idx):
        x = self.tok(idx) + self.pos(torch.arange(idx.size(1)))
        for b in self.blocks:
            x = b(x)
        return self.head(self.norm(x))

    @torch.no_grad()
    def generate(self, idx, n):
        for _ in range(n):
            logits = self(idx[:, -self.block:])[:, -1]
            nxt = torch.multinomial(F.softmax(logits, -1), 1)
            idx = torch.cat([idx, nxt], 1)
        return idx


def get_batch(data, batch, block):
    start = torch.randint(0, len(data) - block - 2, (batch,))
    x = torch.stack([data[s:s + block] for s in start])
    y = torch.stack([data[s + 1:s + block + 1] for s in start])
    return x, y


def lr_at(step, args):
    if step < args.warmup:
        return args.lr * (step + 1) / args.warmup
    p = (step - args.warmup) / (args.steps - args.warmup)
    return args.lr * (0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * p)))


@torch.no_grad()
def val_perplexity(model, data, block):
    model.eval()
    losses = []
    for s in range(0, len(data) - block - 2, block * 4):
        x, y = data[s:s + block][None], data[s + 1:s + block + 1][None]
        losses.append(F.cross_entropy(model(x).flatten(0, 1), y.flatten()).item())
    model.train()
    return math.exp(sum(losses) / len(losses))


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=550)
    ap.add_argument("--batch", type=int, default=32)
    ap.add_argument("--block", type=int, default=48)
    ap.add_argument("--lr", type=float, default=3e-3)
    ap.add_argument("--warmup", type=int, default=30)
    args = ap.parse_args()
    torch.manual_seed(1)

    text, val_text = make_corpus(4000, 0), make_corpus(400, 99)
    chars = sorted(set(text))
    stoi = {c: i for i, c in enumerate(chars)}
    train_data = torch.tensor([stoi[c] for c in text])
    val_data = torch.tensor([stoi[c] for c in val_text])

    model = GPT(len(chars), args.block)
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr, betas=(0.9, 0.95), weight_decay=0.1)
    running = 0.0
    for step in range(args.steps):
        for g in opt.param_groups:
            g["lr"] = lr_at(step, args)
        x, y = get_batch(train_data, args.batch, args.block)
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        running += loss.item()
        if (step + 1) % 50 == 0:
            ppl = val_perplexity(model, val_data, args.block)
            print(f"step {step + 1}: train loss {running / 50:.3f}  val perplexity {ppl:.3f}")
            running = 0.0

    model.eval()
    prompt = torch.tensor([[stoi[c] for c in "the "]]).repeat(8, 1)
    samples = ["".join(chars[i] for i in row) for row in model.generate(prompt, 100).tolist()]
    print("sample:", samples[0])
    # the last word of each sample may be cut off
    words = [w.strip(".") for s in samples for w in s.split(" ")[:-1]]
    valid = sum(w in WORDS for w in words) / max(1, len(words))
    ppl = val_perplexity(model, val_data, args.block)
    print(f"final val perplexity {ppl:.3f}  valid words in samples {valid:.3f}")
