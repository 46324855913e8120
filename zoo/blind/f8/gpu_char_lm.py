"""Character language model on a generated grammar."""
import math
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

DEV = torch.device("cuda" if torch.cuda.is_available() else "cpu")
NOUN = ["cat", "dog", "bird", "fish", "cow"]
VERB = ["eats", "sees", "likes", "finds"]
ADJ = ["red", "big", "old", "shy"]


def sentence(rng):
    return f"the {rng.choice(ADJ)} {rng.choice(NOUN)} {rng.choice(VERB)} the {rng.choice(NOUN)}. "


rng = random.Random(0)
text = "".join(sentence(rng) for _ in range(900))
chars = sorted(set(text))
ids = torch.tensor([chars.index(c) for c in text])
CTX = 24


class Block(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.heads = heads
        self.qkv = nn.Linear(d, 3 * d)
        self.proj = nn.Linear(d, d)
        self.mlp = nn.Sequential(nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(a.transpose(1, 2).reshape(b, t, d))
        return x + self.mlp(self.n2(x))


class LM(nn.Module):
    def __init__(self, vocab, d=32):
        super().__init__()
        self.tok = nn.Embedding(vocab, d)
        self.pos = nn.Embedding(CTX, d)
        self.blocks = nn.Sequential(Block(d, 2), Block(d, 2))
        self.norm = nn.LayerNorm(d)
        self.head = nn.Linear(d, vocab)

    def forward(self, x):
        h = self.tok(x) + self.pos(torch.arange(x.shape[1], device=x.device))
        return self.head(self.norm(self.blocks(h)))


def batch(n, g):
    at = torch.randint(0, len(ids) - CTX - 1, (n,), generator=g)
    win = torch.stack([ids[i:i + CTX + 1] for i in at])
    return win[:, :-1], win[:, 1:]


def main():
    torch.manual_seed(1)
    g = torch.Generator().manual_seed(1)
    model = LM(len(chars)).to(DEV)
    opt = torch.optim.SGD(model.parameters(), lr=0.15, momentum=0.9)
    warmup = 25
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: (s + 1) / warmup)
    for step in range(450):
        x, y = batch(12, g)
        x, y = x.to(DEV), y.to(DEV)
        with torch.autocast(DEV.type, dtype=torch.bfloat16, enabled=DEV.type == "cuda"):
            logits = model(x)
        loss = F.cross_entropy(logits.float().flatten(0, 1), y.flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        if step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f} ppl {math.exp(min(loss.item(), 20)):.2f}")


if __name__ == "__main__":
    main()
