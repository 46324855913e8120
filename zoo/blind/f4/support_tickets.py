import math
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(60)
VOCAB, PAD = 120, 0


class Tickets(Dataset):
    def __init__(self, n=2400):
        g = torch.Generator().manual_seed(60)
        self.docs, self.y = [], []
        for i in range(n):
            k = int(torch.randint(3, 18, (1,), generator=g))
            y = int(torch.randint(0, 3, (1,), generator=g))
            d = torch.randint(1, VOCAB, (k,), generator=g)
            d[torch.rand(k, generator=g) < 0.35] = 10 + y
            if i == 2019:
                d = d[:0]
            self.docs.append(d)
            self.y.append(y)

    def __len__(self):
        return len(self.docs)

    def __getitem__(self, i):
        return self.docs[i], self.y[i]


def pad(batch):
    ds, ys = zip(*batch)
    return nn.utils.rnn.pad_sequence(ds, batch_first=True, padding_value=PAD), torch.tensor(ys)


class SelfAttention(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.h, self.qkv, self.o = heads, nn.Linear(d, 3 * d), nn.Linear(d, d)

    def forward(self, x, pad_mask):
        B, T, D = x.shape
        q, k, v = self.qkv(x).view(B, T, 3, self.h, D // self.h).permute(2, 0, 3, 1, 4)
        s = q @ k.transpose(-1, -2) / math.sqrt(D // self.h)
        s = s.masked_fill(pad_mask[:, None, None, :], float("-inf"))
        w = torch.softmax(s, dim=-1)
        return self.o((w @ v).transpose(1, 2).reshape(B, T, D))


class Classifier(nn.Module):
    def __init__(self, d=32):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, d, padding_idx=PAD)
        self.att = SelfAttention(d, 4)
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.ff = nn.Sequential(nn.Linear(d, 64), nn.GELU(), nn.Linear(64, d))
        self.head = nn.Linear(d, 3)

    def forward(self, tok):
        m = tok == PAD
        x = self.emb(tok)
        x = x + self.att(self.n1(x), m)
        x = x + self.ff(self.n2(x))
        keep = (~m).unsqueeze(-1).float()
        return self.head((x * keep).sum(1) / keep.sum(1).clamp(min=1.0))


model = Classifier()
opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
loader = DataLoader(Tickets(), batch_size=16, collate_fn=pad, shuffle=True,
                    generator=torch.Generator().manual_seed(7))
for i, (tok, y) in enumerate(loader):
    loss = nn.functional.cross_entropy(model(tok), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if i % 10 == 0:
        print(f"{i:4d} {loss.item():.4f}")
