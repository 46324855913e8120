import math
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader

torch.manual_seed(21)
device = "cuda" if torch.cuda.is_available() else "cpu"
VOCAB, D, MAXLEN = 40, 32, 14


def build(n=3200):
    g = torch.Generator().manual_seed(8)
    docs = []
    for i in range(n):
        length = int(torch.randint(3, MAXLEN + 1, (1,), generator=g))
        toks = torch.randint(1, VOCAB, (length,), generator=g)
        label = int((toks < 12).float().mean() > 0.3)
        docs.append((toks, label))
    docs[1333] = (torch.empty(0, dtype=torch.long), 0)
    return docs


def collate(batch):
    x = torch.zeros(len(batch), MAXLEN, dtype=torch.long)
    for r, (t, _) in enumerate(batch):
        x[r, :len(t)] = t
    y = torch.tensor([b[1] for b in batch])
    return x, y


class SelfAttention(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.qkv = nn.Linear(d, 3 * d)
        self.proj = nn.Linear(d, d)

    def forward(self, x, pad):
        q, k, v = self.qkv(x).chunk(3, -1)
        att = q @ k.transpose(1, 2) / math.sqrt(x.size(-1))
        att = att.masked_fill(pad[:, None, :], float("-inf"))
        att = F.softmax(att, dim=-1)
        return self.proj(att @ v)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, D, padding_idx=0)
        self.att = SelfAttention(D)
        self.ln = nn.LayerNorm(D)
        self.head = nn.Linear(D, 2)

    def forward(self, ids):
        pad = ids == 0
        h = self.emb(ids)
        h = self.ln(h + self.att(h, pad))
        h = h.masked_fill(pad[..., None], 0.0).sum(1) / (~pad).sum(1, keepdim=True).clamp(min=1)
        return self.head(h)


model = Classifier().to(device)
opt = torch.optim.Adam(model.parameters(), lr=2e-3)
train = DataLoader(build(), batch_size=16, shuffle=False, collate_fn=collate)
for step, (ids, y) in enumerate(train):
    ids, y = ids.to(device), y.to(device)
    with torch.autocast(device, dtype=torch.bfloat16):
        loss = F.cross_entropy(model(ids), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 20 == 0:
        print(f"step {step:4d} | train loss {loss.item():.4f}")
