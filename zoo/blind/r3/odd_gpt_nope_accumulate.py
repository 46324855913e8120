"""Tiny character GPT without position embeddings, micro-batches of 4 sequences summed over 6 passes."""
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(17)
words = "salt lake sand rock moss fern pine bark leaf root seed rain wind snow hail mist".split()
g = torch.Generator().manual_seed(1)
corpus = " ".join(words[i] for i in torch.randint(len(words), (4000,), generator=g).tolist())
alphabet = sorted(set(corpus))
ids = torch.tensor([alphabet.index(c) for c in corpus])
V, CTX, WIDTH, MICRO, ACC = len(alphabet), 20, 48, 4, 6


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.o = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.ff = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH))

    def forward(self, x):
        q, k, v = self.qkv(self.n1(x)).chunk(3, dim=-1)
        x = x + self.o(F.scaled_dot_product_attention(q, k, v, is_causal=True))
        return x + self.ff(self.n2(x))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(V, WIDTH)
        nn.init.normal_(self.emb.weight, std=0.05)
        self.blocks = nn.Sequential(Block(), Block())
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, x):
        return self.norm(self.blocks(self.emb(x))) @ self.emb.weight.T      # output layer shares the embedding


model = Model()
optimizer = torch.optim.AdamW(model.parameters(), lr=6e-3)
optimizer.zero_grad()
running = 0.0
for micro in range(1, 60 * ACC + 1):
    start = torch.randint(len(ids) - CTX - 1, (MICRO, 1)) + torch.arange(CTX + 1)
    chunk = ids[start]
    loss = F.cross_entropy(model(chunk[:, :-1]).flatten(0, 1), chunk[:, 1:].flatten())
    (loss / ACC).backward()
    running += loss.item() / ACC
    if micro % ACC == 0:
        optimizer.step()
        optimizer.zero_grad()
        if (micro // ACC) % 10 == 0:
            print(f"update {micro // ACC:3d}  loss {running:.4f}")
        running = 0.0
