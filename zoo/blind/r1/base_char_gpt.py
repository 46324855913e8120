import math
import random
import torch
import torch.nn as nn
from torch.nn import functional as F

# ---- config
block_size, batch_size, n_embd, n_head, n_layer = 20, 24, 32, 4, 2
max_iters, learning_rate, warmup = 250, 6e-3, 30
torch.manual_seed(1337)
random.seed(1337)

letters = "abcdefgh"
stoi = {c: i for i, c in enumerate(letters + " ")}
itos = {i: c for c, i in stoi.items()}


def make_corpus(n):
    # every word is said twice: "cafe cafe "
    out = []
    for _ in range(n):
        w = "".join(random.choice(letters) for _ in range(4))
        out.append(w + " " + w + " ")
    return "".join(out)


data = torch.tensor([stoi[c] for c in make_corpus(4000)])


def get_batch():
    ix = torch.randint(len(data) - block_size - 2, (batch_size,))
    x = torch.stack([data[i:i + block_size] for i in ix])
    y = torch.stack([data[i + 1:i + block_size + 1] for i in ix])
    return x, y


class CausalSelfAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(n_embd, 3 * n_embd)
        self.proj = nn.Linear(n_embd, n_embd)
        self.register_buffer("mask", torch.tril(torch.ones(block_size, block_size)).bool())

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.qkv(x).split(C, dim=2)
        q = q.view(B, T, n_head, C // n_head).transpose(1, 2)
        k = k.view(B, T, n_head, C // n_head).transpose(1, 2)
        v = v.view(B, T, n_head, C // n_head).transpose(1, 2)
        att = q @ k.transpose(-2, -1) / math.sqrt(C // n_head)
        att = att.masked_fill(~self.mask[:T, :T], -1e9)
        att = F.softmax(att, dim=-1)
        y = (att @ v).transpose(1, 2).contiguous().view(B, T, C)
        return self.proj(y)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(n_embd), nn.LayerNorm(n_embd)
        self.attn = CausalSelfAttention()
        self.mlp = nn.Sequential(nn.Linear(n_embd, 2 * n_embd), nn.GELU(), nn.Linear(2 * n_embd, n_embd))

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class GPT(nn.Module):
    def __init__(self, vocab):
        super().__init__()
        self.tok = nn.Embedding(vocab, n_embd)
        self.pos = nn.Embedding(block_size, n_embd)
        self.blocks = nn.Sequential(*[Block() for _ in range(n_layer)])
        self.ln_f = nn.LayerNorm(n_embd)
        self.head = nn.Linear(n_embd, vocab)

    def forward(self, idx, targets=None):
        B, T = idx.shape
        x = self.tok(idx) + self.pos(torch.arange(T))
        logits = self.head(self.ln_f(self.blocks(x)))
        if targets is None:
            return logits, None
        return logits, F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))


model = GPT(len(stoi))
optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda it: min(1.0, (it + 1) / warmup))
for it in range(max_iters):
    xb, yb = get_batch()
    logits, loss = model(xb, yb)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    scheduler.step()
    if it % 50 == 0 or it == max_iters - 1:
        print(f"iter {it}: loss {loss.item():.4f}")

# complete the repeated word greedily
words = [[random.randrange(8) for _ in range(4)] for _ in range(100)]
ctx = torch.tensor([[8] + w + [8] for w in words])
for _ in range(4):
    with torch.no_grad():
        logits, _ = model(ctx)
    ctx = torch.cat([ctx, logits[:, -1].argmax(-1, keepdim=True)], dim=1)
hit = (ctx[:, 6:] == torch.tensor(words)).float().mean().item()
print(f"completion accuracy {hit:.3f}   sample: {''.join(itos[i] for i in ctx[0].tolist())!r}")
