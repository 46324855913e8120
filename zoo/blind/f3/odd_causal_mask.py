import math
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
VOCAB, LEN, D = 20, 16, 32


class CausalSelf(nn.Module):
    def __init__(self, d, heads=2):
        super().__init__()
        self.h = heads
        self.qkv = nn.Linear(d, 3 * d)
        self.proj = nn.Linear(d, d)
        self.register_buffer("bias", torch.full((LEN, LEN), float("-inf")).triu(1))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.h, d // self.h).permute(2, 0, 3, 1, 4)
        att = q @ k.transpose(-2, -1) / math.sqrt(d // self.h) + self.bias[:t, :t]
        y = att.softmax(-1) @ v
        return self.proj(y.transpose(1, 2).reshape(b, t, d))


class Tiny(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, D)
        self.pos = nn.Parameter(torch.randn(LEN, D) * 0.02)
        self.att = CausalSelf(D)
        self.n1, self.n2 = nn.LayerNorm(D), nn.LayerNorm(D)
        self.mlp = nn.Sequential(nn.Linear(D, 64), nn.GELU(), nn.Linear(64, D))
        self.out = nn.Linear(D, VOCAB)

    def forward(self, idx):
        x = self.tok(idx) + self.pos[: idx.size(1)]
        x = x + self.att(self.n1(x))
        return self.out(x + self.mlp(self.n2(x)))


def sequences(n):
    start = torch.randint(0, VOCAB, (n, 1))
    step = torch.randint(1, 4, (n, 1))
    return (start + step * torch.arange(LEN + 1)) % VOCAB


model = Tiny()
opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
for it in range(250):
    s = sequences(24)
    loss = F.cross_entropy(model(s[:, :-1]).flatten(0, 1), s[:, 1:].flatten())
    opt.zero_grad()
    loss.backward()
    opt.step()
    if it % 25 == 0:
        print(f"iter {it} loss {loss.item():.4f}")
