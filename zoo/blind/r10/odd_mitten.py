"""Masked modelling on categorical sequences: loss only on the hidden 20 percent of positions, bidirectional attention."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(2)
V, L, MASK, IGNORE = 20, 24, 20, -100
g = torch.Generator().manual_seed(5)
tables = torch.stack([torch.randperm(V, generator=g) for _ in range(2)])


def sequences(n):
    """Walk with two likely successors for every symbol and ten percent noise."""
    s = torch.randint(0, V, (n, L), generator=g)
    for t in range(1, L):
        branch = (torch.rand(n, generator=g) < 0.3).long()
        nxt = tables[branch, s[:, t - 1]]
        noise = torch.rand(n, generator=g) < 0.1
        s[:, t] = torch.where(noise, s[:, t], nxt)
    return s


def corrupt(s, gen=None):
    hide = torch.rand(s.shape, generator=gen) < 0.2
    r = torch.rand(s.shape, generator=gen)
    x = torch.where(hide & (r < 0.8), torch.full_like(s, MASK), s)
    rand = torch.randint(0, V, s.shape, generator=gen)
    x = torch.where(hide & (r >= 0.9), rand, x)
    return x, torch.where(hide, s, torch.full_like(s, IGNORE))


class Encoder(nn.Module):
    def __init__(self, d=48):
        super().__init__()
        self.tok, self.pos = nn.Embedding(V + 1, d), nn.Parameter(torch.randn(L, d))
        layer = nn.TransformerEncoderLayer(d, 4, 2 * d, dropout=0.0, batch_first=True, norm_first=True)
        self.enc = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm, self.out = nn.LayerNorm(d), nn.Linear(d, V)

    def forward(self, x):
        return self.out(self.norm(self.enc(self.tok(x) + self.pos)))


train, val = sequences(6000), sequences(500)
gv = torch.Generator().manual_seed(9)
vx, vy = corrupt(val, gv)
model = Encoder()
opt = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=0.0)
steps = 400
sched = torch.optim.lr_scheduler.OneCycleLR(opt, 4e-3, total_steps=steps, pct_start=0.1)
run = 0.0
for i in range(1, steps + 1):
    x, y = corrupt(train[torch.randint(len(train), (64,))])
    loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten(), ignore_index=IGNORE)
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
    sched.step()
    run += loss.item()
    if i % 50 == 0:
        model.eval()
        with torch.no_grad():
            out = model(vx)
            vl = F.cross_entropy(out.flatten(0, 1), vy.flatten(), ignore_index=IGNORE).item()
            hid = vy != IGNORE
            acc = (out.argmax(-1)[hid] == vy[hid]).float().mean().item()
        model.train()
        print(f"step {i:4d}  masked loss {run / 50:.4f}  val {vl:.4f}  hidden symbols recovered {acc:.3f}")
        run = 0.0
print(f"hidden share {hid.float().mean().item():.3f}  chance {1 / V:.3f}  recovered {acc:.3f}")
