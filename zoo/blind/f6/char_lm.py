import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
PAD, VOCAB, WIDTH, DIM, STEPS, BATCH = 0, 28, 24, 48, 260, 16
LETTERS = "abcdefghijklmnopqrstuvwxyz "
WORDS = ["river", "stone", "cloud", "amber", "quiet", "lantern", "forest", "velvet", "harbor"]


def write_book(lines):
    gen = torch.Generator().manual_seed(5)
    book = []
    for i in range(lines):
        count = int(torch.randint(1, 4, (1,), generator=gen))
        pick = torch.randint(0, len(WORDS), (count,), generator=gen)
        book.append(" ".join(WORDS[p] for p in pick))
    for i in (160 * BATCH + 9, 201 * BATCH + 2):
        book[i] = ""
    return book


def encode(lines):
    ids = torch.full((len(lines), WIDTH), PAD)
    for r, line in enumerate(lines):
        code = [LETTERS.index(c) + 1 for c in line][:WIDTH]
        ids[r, :len(code)] = torch.tensor(code, dtype=torch.long)
    return ids


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(DIM, 3 * DIM)
        self.proj = nn.Linear(DIM, DIM)
        self.ff = nn.Sequential(nn.Linear(DIM, 96), nn.GELU(), nn.Linear(96, DIM))
        self.n1, self.n2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)

    def forward(self, x, allowed):
        q, k, v = self.qkv(self.n1(x)).chunk(3, -1)
        score = q @ k.transpose(1, 2) / DIM ** 0.5
        score = score.masked_fill(~allowed, float("-inf"))
        att = torch.softmax(score, dim=-1)
        x = x + self.proj(att @ v)
        return x + self.ff(self.n2(x))


class CharLM(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, DIM)
        self.pos = nn.Parameter(torch.randn(WIDTH, DIM) * 0.02)
        self.blocks = nn.ModuleList(Block() for _ in range(2))
        self.head = nn.Linear(DIM, VOCAB)

    def forward(self, ids):
        causal = torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).tril()
        allowed = causal & (ids != PAD)[:, None, :]
        x = self.emb(ids) + self.pos[:ids.shape[1]]
        for block in self.blocks:
            x = block(x, allowed)
        return self.head(x)


book = write_book(BATCH * STEPS)
model = CharLM()
opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
losses = []
for step in range(STEPS):
    ids = encode(book[step * BATCH:(step + 1) * BATCH])
    logits = model(ids[:, :-1])
    loss = F.cross_entropy(logits.reshape(-1, VOCAB), ids[:, 1:].reshape(-1), ignore_index=PAD)
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
    losses.append(loss.item())
    if step % 20 == 0:
        print(step, round(loss.item(), 4))
print("final", losses[-1])
