"""Encoder-decoder with additive attention; the share of teacher forcing falls from 1 to 0, later batches run on the model's own words."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(77)
V, L, D = 12, 5, 48          # 0 is the start symbol
perm = torch.randperm(V - 1) + 1


def pairs(n):
    src = torch.randint(1, V, (n, L))
    tgt = perm[src - 1].flip(1)
    return src, tgt


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.es, self.et = nn.Embedding(V, D), nn.Embedding(V, D)
        self.pos = nn.Parameter(0.1 * torch.randn(L, D))
        self.enc = nn.GRU(D, D, batch_first=True)
        self.cell = nn.GRUCell(2 * D, D)
        self.wa, self.wb, self.v = nn.Linear(D, D), nn.Linear(D, D), nn.Linear(D, 1)
        self.out = nn.Linear(2 * D, V)

    def forward(self, src, tgt=None, force=0.0):
        mem, h = self.enc(self.es(src) + self.pos)
        mem = mem + self.pos
        h, tok, outs, key = h[0], torch.zeros(len(src), dtype=torch.long), [], self.wb(mem)
        for t in range(L):
            w = torch.softmax(self.v(torch.tanh(self.wa(h)[:, None] + key)), 1)
            ctx = (w * mem).sum(1)
            h = self.cell(torch.cat([self.et(tok), ctx], 1), h)
            logit = self.out(torch.cat([h, ctx], 1))
            outs.append(logit)
            tok = logit.argmax(1)
            if tgt is not None:
                tok = torch.where(torch.rand(len(src)) < force, tgt[:, t], tok)
        return torch.stack(outs, 1)


m = Model()
opt = torch.optim.Adam(m.parameters(), lr=6e-3)
vs, vt = pairs(500)
total = 160
for step in range(total):
    force = max(0.0, 1 - step / 120)
    s, t = pairs(64)
    loss = F.cross_entropy(m(s, t, force).flatten(0, 1), t.flatten())
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(m.parameters(), 1.0)
    opt.step()
    if step % 20 == 19:
        with torch.no_grad():
            ok = (m(vs).argmax(-1) == vt)
        print(f"step {step + 1} forcing {force:.2f} loss {loss.item():.3f} tokens {ok.float().mean():.3f} sentences {ok.all(1).float().mean():.3f}")
