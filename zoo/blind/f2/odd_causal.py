import math
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(51)
V, T, D = 24, 14, 32


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(D), nn.LayerNorm(D)
        self.qkv = nn.Linear(D, 3 * D)
        self.o = nn.Linear(D, D)
        self.ff = nn.Sequential(nn.Linear(D, 2 * D), nn.GELU(), nn.Linear(2 * D, D))
        bias = torch.full((T, T), float("-inf")).triu(1)
        self.register_buffer("bias", bias)

    def forward(self, x, pad):
        q, k, v = self.qkv(self.ln1(x)).chunk(3, -1)
        a = q @ k.transpose(1, 2) / math.sqrt(D) + self.bias
        key_pad = pad[:, None, :] & ~torch.eye(T, dtype=torch.bool)
        a = a.masked_fill(key_pad, float("-inf"))
        x = x + self.o(a.softmax(-1) @ v)
        return x + self.ff(self.ln2(x))


class LM(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok = nn.Embedding(V, D)
        self.pos = nn.Parameter(0.02 * torch.randn(T, D))
        self.block = Block()
        self.head = nn.Linear(D, V)

    def forward(self, ids):
        h = self.tok(ids) + self.pos
        return self.head(self.block(h, ids == 0))


model = LM()
opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
for step in range(250):
    start = torch.randint(0, V - 1, (16, 1))
    seq = 1 + (start + torch.randint(1, 3, (16, 1)) * torch.arange(T + 1)) % (V - 1)
    lens = torch.randint(2, T + 2, (16, 1))
    lens[0] = T + 1
    left = torch.arange(T + 1) < (T + 1 - lens)
    seq = seq.masked_fill(left, 0)
    logits = model(seq[:, :-1])
    loss = F.cross_entropy(logits.reshape(-1, V), seq[:, 1:].reshape(-1), ignore_index=0)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 25 == 0:
        print(f"step {step} loss {loss.item():.4f}")
