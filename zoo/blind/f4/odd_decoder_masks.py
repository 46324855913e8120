import torch
import torch.nn as nn

torch.manual_seed(3)
V, T, D = 30, 16, 32


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(D, 3 * D)
        self.o = nn.Linear(D, D)
        self.ln1, self.ln2 = nn.LayerNorm(D), nn.LayerNorm(D)
        self.mlp = nn.Sequential(nn.Linear(D, 64), nn.ReLU(), nn.Linear(64, D))

    def forward(self, x, allowed):
        q, k, v = self.qkv(self.ln1(x)).chunk(3, -1)
        s = q @ k.transpose(1, 2) / D ** 0.5
        s = s.masked_fill(~allowed, -1e9)
        x = x + self.o(s.softmax(-1) @ v)
        return x + self.mlp(self.ln2(x))


emb, pos = nn.Embedding(V, D), nn.Parameter(0.02 * torch.randn(T, D))
blk, head = Block(), nn.Linear(D, V)
params = [*emb.parameters(), pos, *blk.parameters(), *head.parameters()]
opt = torch.optim.AdamW(params, lr=2e-3)
causal = torch.ones(T, T).tril().bool()
for step in range(220):
    start = torch.randint(0, V, (32, 1))
    seq = (start + 3 * torch.arange(T + 1)) % V
    lens = torch.randint(0, T + 1, (32,))             # left padded; a few rows are pure padding
    real = torch.arange(T)[None] >= (T - lens)[:, None]
    allowed = causal[None] & real[:, None, :]
    logits = head(blk(emb(seq[:, :T]) + pos, allowed))
    ce = nn.functional.cross_entropy(logits.transpose(1, 2), seq[:, 1:], reduction="none")
    loss = (ce * real).sum() / real.sum().clamp(min=1)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 20 == 0:
        print(step, loss.item())
