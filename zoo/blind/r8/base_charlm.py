"""Character GPT on text from a little grammar with quoted echoes; accumulation, warm-up + cosine."""
import math
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(21)
random.seed(21)

NAMES = ["anna", "boris", "clara", "dmitri"]
VERBS = ["sees", "likes", "finds", "calls"]
THINGS = ["cat", "river", "lamp", "tower"]
ADJ = ["red", "old", "quiet"]


def sentence():
    name = random.choice(NAMES)
    adj = random.choice(ADJ) + " " if random.random() < 0.6 else ""
    return f"{name} {random.choice(VERBS)} the {adj}{random.choice(THINGS)}.\n"


text = "".join(sentence() for _ in range(2400))
chars = sorted(set(text))
stoi = {c: i for i, c in enumerate(chars)}
data = torch.tensor([stoi[c] for c in text])
cut = int(0.9 * len(data))
train_data, val_data = data[:cut], data[cut:]

BLOCK, BATCH, ACCUM, STEPS = 40, 8, 2, 220
DIM, HEADS, LAYERS = 48, 4, 2
MAX_LR, MIN_LR, WARMUP = 8e-3, 2e-4, 20


def get_batch(split):
    source = train_data if split == "train" else val_data
    at = torch.randint(len(source) - BLOCK - 1, (BATCH,))
    x = torch.stack([source[i:i + BLOCK] for i in at])
    y = torch.stack([source[i + 1:i + BLOCK + 1] for i in at])
    return x, y


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(DIM, 3 * DIM, bias=False)
        self.proj = nn.Linear(DIM, DIM, bias=False)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.qkv(x).split(DIM, dim=2)
        q = q.view(B, T, HEADS, C // HEADS).transpose(1, 2)
        k = k.view(B, T, HEADS, C // HEADS).transpose(1, 2)
        v = v.view(B, T, HEADS, C // HEADS).transpose(1, 2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        y = y.transpose(1, 2).reshape(B, T, C)
        return self.proj(y)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.attn = Attention()
        self.mlp = nn.Sequential(nn.Linear(DIM, 4 * DIM), nn.GELU(), nn.Linear(4 * DIM, DIM))

    def forward(self, x):
        x = x + self.attn(self.n1(x))
        return x + self.mlp(self.n2(x))


class GPT(nn.Module):
    def __init__(self, vocab):
        super().__init__()
        self.tok = nn.Embedding(vocab, DIM)
        self.pos = nn.Embedding(BLOCK, DIM)
        self.blocks = nn.ModuleList([Block() for _ in range(LAYERS)])
        self.norm = nn.LayerNorm(DIM)
        self.head = nn.Linear(DIM, vocab, bias=False)
        self.apply(self.init)
        self.head.weight = self.tok.weight

    @staticmethod
    def init(m):
        if isinstance(m, (nn.Linear, nn.Embedding)):
            nn.init.normal_(m.weight, std=0.02)
        if isinstance(m, nn.Linear) and m.bias is not None:
            nn.init.zeros_(m.bias)

    def forward(self, idx, targets=None):
        x = self.tok(idx) + self.pos(torch.arange(idx.size(1)))
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        loss = None
        if targets is not None:
            loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))
        return logits, loss


@torch.no_grad()
def generate(model, n):
    idx = torch.tensor([[stoi["\n"]]] * 4)
    for _ in range(n):
        logits, _ = model(idx[:, -BLOCK:])
        nxt = torch.multinomial(F.softmax(logits[:, -1] / 0.8, dim=-1), 1)
        idx = torch.cat([idx, nxt], dim=1)
    return ["".join(chars[i] for i in row) for row in idx.tolist()]


@torch.no_grad()
def estimate(model, split, k=8):
    model.eval()
    loss = sum(model(*get_batch(split))[1].item() for _ in range(k)) / k
    model.train()
    return loss


def lr_at(step):
    if step < WARMUP:
        return MAX_LR * (step + 1) / WARMUP
    t = (step - WARMUP) / (STEPS - WARMUP)
    return MIN_LR + 0.5 * (MAX_LR - MIN_LR) * (1 + math.cos(math.pi * t))


model = GPT(len(chars))
decay = [p for p in model.parameters() if p.dim() >= 2]
plain = [p for p in model.parameters() if p.dim() < 2]
optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": plain, "weight_decay": 0.0}],
                              lr=MAX_LR, betas=(0.9, 0.95))
for step in range(STEPS):
    for group in optimizer.param_groups:
        group["lr"] = lr_at(step)
    optimizer.zero_grad(set_to_none=True)
    for _ in range(ACCUM):
        x, y = get_batch("train")
        _, loss = model(x, y)
        (loss / ACCUM).backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if step % 40 == 0 or step == STEPS - 1:
        print(f"step {step:4d} lr {lr_at(step):.1e} grad {norm:.2f} train {estimate(model, 'train'):.3f} val {estimate(model, 'val'):.3f}")

samples = generate(model, 120)
words = set(NAMES + VERBS + THINGS + ADJ + ["the"])
made = [w.strip(",.") for s in samples for w in s.split()[:-1]]
shapes = {("n", "v", "t", "o"), ("n", "v", "t", "a", "o")}
kind = {**{w: "n" for w in NAMES}, **{w: "v" for w in VERBS}, **{w: "o" for w in THINGS}, **{w: "a" for w in ADJ}, "the": "t"}
lines = [l for s in samples for l in s.strip().split("\n")[:-1]]
right = sum(tuple(kind.get(w.strip("."), "?") for w in l.split()) in shapes for l in lines)
print(samples[0])
print(f"generated words that exist: {sum(w in words for w in made) / max(len(made), 1):.3f}")
print(f"whole sentences that follow the grammar: {right / max(len(lines), 1):.3f} of {len(lines)}")
