"""Sentiment of short reviews with a two-layer transformer encoder."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(2)
torch.set_num_threads(1)

VOCAB, PAD, MAXLEN, DIM, HEADS = 300, 0, 24, 48, 4
BATCH, EPOCHS, N_DOCS = 16, 3, 2400
STOP_WORDS = set(range(1, 13))


def make_reviews():
    g = torch.Generator().manual_seed(31)
    docs, labels = [], []
    polarity = torch.randn(VOCAB, generator=g)
    for i in range(N_DOCS):
        n = int(torch.randint(6, MAXLEN + 8, (1,), generator=g))
        words = torch.randint(1, VOCAB, (n,), generator=g).tolist()
        if i == 1533:
            words = [3, 9, 3, 11]          # "it was what it was"
        label = int(polarity[torch.tensor(words)].mean() > 0)
        docs.append([w for w in words if w not in STOP_WORDS][:MAXLEN])
        labels.append(label)
    return docs, torch.tensor(labels)


def collate(docs, idx):
    tokens = torch.full((len(idx), MAXLEN), PAD)
    for row, i in enumerate(idx):
        doc = docs[i]
        tokens[row, :len(doc)] = torch.tensor(doc, dtype=torch.long)
    return tokens


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(DIM, 3 * DIM)
        self.proj = nn.Linear(DIM, DIM)
        self.n1, self.n2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.mlp = nn.Sequential(nn.Linear(DIM, 2 * DIM), nn.GELU(), nn.Linear(2 * DIM, DIM))

    def forward(self, x, pad):
        b, t, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, HEADS, d // HEADS).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2) / math.sqrt(d // HEADS)
        scores = scores.masked_fill(pad[:, None, None, :], float("-inf"))
        att = scores.softmax(dim=-1)
        x = x + self.proj((att @ v).transpose(1, 2).reshape(b, t, d))
        return x + self.mlp(self.n2(x))


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, DIM, padding_idx=PAD)
        self.pos = nn.Parameter(0.02 * torch.randn(MAXLEN, DIM))
        self.blocks = nn.ModuleList([Block(), Block()])
        self.head = nn.Linear(DIM, 2)

    def forward(self, tokens):
        pad = tokens == PAD
        x = self.tok(tokens) + self.pos
        for blk in self.blocks:
            x = blk(x, pad)
        keep = (~pad).unsqueeze(-1).float()
        pooled = (x * keep).sum(1) / keep.sum(1).clamp(min=1)
        return self.head(pooled)


def main():
    docs, labels = make_reviews()
    net = Encoder()
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
    step = 0
    for epoch in range(EPOCHS):
        order = torch.randperm(N_DOCS).tolist()
        for s in range(0, N_DOCS, BATCH):
            idx = order[s:s + BATCH]
            loss = F.cross_entropy(net(collate(docs, idx)), labels[idx])
            opt.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            opt.step()
            if step % 25 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.4f}")
            step += 1


if __name__ == "__main__":
    main()
