"""Tiny causal transformer on a repeat-the-pattern task."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
V, L, D, H = 12, 16, 32, 4


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(D, 3 * D)
        self.proj = nn.Linear(D, D)
        self.ff = nn.Sequential(nn.Linear(D, 64), nn.ReLU(), nn.Linear(64, D))
        self.n1, self.n2 = nn.LayerNorm(D), nn.LayerNorm(D)

    def forward(self, x, blocked):
        b, l, _ = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, l, 3, H, D // H).permute(2, 0, 3, 1, 4)
        att = q @ k.transpose(-2, -1) / (D // H) ** 0.5
        att = att.masked_fill(blocked, float("-inf")).softmax(-1)
        x = x + self.proj((att @ v).transpose(1, 2).reshape(b, l, D))
        return x + self.ff(self.n2(x))


class LM(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok, self.pos = nn.Embedding(V, D), nn.Embedding(L, D)
        self.blocks = nn.ModuleList([Block(), Block()])
        self.out = nn.Linear(D, V)

    def forward(self, ids, lengths):
        x = self.tok(ids) + self.pos.weight
        t = torch.arange(L)
        future = t[None, :] > t[:, None]
        pad = t[None, :] >= lengths[:, None]
        blocked = (future[None] | pad[:, None, :])[:, None]
        for blk in self.blocks:
            x = blk(x, blocked)
        return self.out(x)


def batch(n=32):
    period = torch.randint(2, 5, (n,))
    motif = torch.randint(1, V, (n, 4))
    ids = motif.gather(1, torch.arange(L)[None] % period[:, None])
    lengths = torch.randint(9, L + 1, (n,))
    ids = torch.where(torch.arange(L)[None] < lengths[:, None], ids, 0)
    return ids, lengths


model = LM()
opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
for step in range(170):
    ids, lengths = batch()
    logits = model(ids, lengths)
    loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten(), ignore_index=0)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 20 == 0:
        print(f"step {step} loss {loss.item():.4f}")
