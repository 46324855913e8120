import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(2)
ACCUM = 4
LEN, VOCAB, TAGS = 10, 60, 5


def sentences(n=4800):
    tokens = torch.randint(0, VOCAB, (n, LEN))
    tags = (tokens % TAGS + (torch.roll(tokens, 1, 1) > 30).long()) % TAGS
    lengths = torch.randint(2, LEN + 1, (n,))
    tags[torch.arange(LEN).unsqueeze(0) >= lengths.unsqueeze(1)] = -100
    tags[1768:1776] = -100
    return tokens, tags


class Tagger(nn.Module):
    def __init__(self, d=32):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, d)
        self.rnn = nn.GRU(d, d, batch_first=True)
        self.out = nn.Linear(d, TAGS)

    def forward(self, x):
        h, _ = self.rnn(self.emb(x))
        return self.out(h)


def token_loss(logits, tags):
    valid = (tags != -100).float()
    per_token = F.cross_entropy(logits.transpose(1, 2), tags.clamp(min=0), reduction="none")
    return (per_token * valid).sum() / valid.sum()


model = Tagger()
opt = torch.optim.Adam(model.parameters(), lr=5e-3)
loader = DataLoader(TensorDataset(*sentences()), batch_size=8)
total = 0.0
for i, (tokens, tags) in enumerate(loader):
    logits = model(tokens)
    loss = token_loss(logits, tags) / ACCUM
    loss.backward()
    total += loss.item()
    if (i + 1) % ACCUM == 0:
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        opt.zero_grad()
    if (i + 1) % 60 == 0:
        print(f"update {(i + 1) // ACCUM} loss {total / 60 * ACCUM:.4f}")
        total = 0.0
