# string reversal with a curriculum on length
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(9)
V, H = 10, 48


class Reverser(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(V, H)
        self.enc = nn.GRU(H, H, batch_first=True, bidirectional=True)
        self.dec = nn.GRU(H, 2 * H, batch_first=True)
        self.key = nn.Linear(2 * H, 2 * H, bias=False)
        self.out = nn.Linear(4 * H, V)

    def forward(self, src, prev):
        mem, h = self.enc(self.emb(src))
        y, _ = self.dec(self.emb(prev), torch.cat([h[0], h[1]], 1)[None])
        w = torch.softmax(y @ self.key(mem).transpose(1, 2) / (2 * H) ** 0.5, -1)
        return self.out(torch.cat([y, w @ mem], -1))


net = Reverser()
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
for length in (2, 4, 6):
    for it in range(60):
        src = torch.randint(1, V, (40, length))
        tgt = src.flip(1)
        prev = F.pad(tgt[:, :-1], (1, 0), value=0)
        logits = net(src, prev)
        loss = F.cross_entropy(logits.reshape(-1, V), tgt.reshape(-1))
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        if it in (0, 19, 39, 59):
            acc = (logits.argmax(-1) == tgt).float().mean()
            print(f"length {length} it {it:2d} loss {loss.item():.3f} token acc {acc:.3f}")
