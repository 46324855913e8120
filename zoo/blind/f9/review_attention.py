import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(5)

VOCAB, DIM, MAXLEN = 300, 32, 20


def make_reviews(count=3000):
    lengths = torch.poisson(torch.full((count,), 7.0)).long().clamp(max=MAXLEN)
    tokens = torch.zeros(count, MAXLEN, dtype=torch.long)
    labels = torch.randint(0, 2, (count,))
    for row in range(count):
        n = int(lengths[row])
        low = 1 if labels[row] == 0 else 100
        tokens[row, :n] = torch.randint(low, low + 199, (n,))
    return tokens, lengths, labels


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, DIM, padding_idx=0)
        self.pos = nn.Parameter(0.02 * torch.randn(MAXLEN, DIM))
        self.qkv = nn.Linear(DIM, 3 * DIM)
        self.norm = nn.LayerNorm(DIM)
        self.out = nn.Linear(DIM, 2)

    def forward(self, tokens, lengths):
        h = self.embed(tokens) + self.pos
        q, k, v = self.qkv(h).chunk(3, dim=-1)
        scores = q @ k.transpose(1, 2) / math.sqrt(DIM)
        pad = torch.arange(MAXLEN)[None, :] >= lengths[:, None]
        scores = scores.masked_fill(pad[:, None, :], float("-inf"))
        weights = F.softmax(scores, dim=-1)
        h = self.norm(h + weights @ v)
        keep = (~pad).float().unsqueeze(-1)
        pooled = (h * keep).sum(1) / keep.sum(1).clamp(min=1.0)
        return self.out(pooled)


tokens, lengths, labels = make_reviews()
model = Reader()
opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
step = 0
for epoch in range(4):
    order = torch.randperm(len(tokens))
    correct = 0
    for idx in order.split(24):
        logits = model(tokens[idx], lengths[idx])
        loss = F.cross_entropy(logits, labels[idx])
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        correct += (logits.argmax(1) == labels[idx]).sum().item()
        if step % 40 == 0:
            print("step", step, "loss", round(loss.item(), 4))
        step += 1
    print("epoch", epoch, "accuracy", correct / len(tokens))
