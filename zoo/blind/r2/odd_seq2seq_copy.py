"""Copy task: the target sequence is the source sequence itself."""
import torch
import torch.nn as nn

torch.manual_seed(8)
V, L, H = 9, 6, 48
BOS = 0


class Copier(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(V, H)
        self.enc = nn.GRU(H, H, batch_first=True)
        self.dec = nn.GRU(H, H, batch_first=True)
        self.attn = nn.MultiheadAttention(H, 2, batch_first=True)
        self.pos = nn.Parameter(torch.randn(L, H) * 0.5)
        self.out = nn.Linear(2 * H, V)

    def forward(self, src, prev):
        mem, h = self.enc(self.emb(src) + self.pos)
        q, _ = self.dec(self.emb(prev) + self.pos[: prev.size(1)], h)
        ctx, _ = self.attn(q, mem, mem, need_weights=False)
        return self.out(torch.cat([q, ctx], -1))


model = Copier()
opt = torch.optim.Adam(model.parameters(), lr=4e-3)
for step in range(1, 151):
    src = torch.randint(1, V, (48, L))
    tgt = src
    prev = torch.cat([torch.full((48, 1), BOS), tgt[:, :-1]], 1)
    loss = nn.functional.cross_entropy(model(src, prev).transpose(1, 2), tgt)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 25 == 0:
        print(f"step {step} loss {loss.item():.4f}")

model.eval()
with torch.no_grad():
    src = torch.randint(1, V, (200, L))
    prev = torch.full((200, 1), BOS)
    for i in range(L):
        nxt = model(src, prev)[:, -1].argmax(-1, keepdim=True)
        prev = torch.cat([prev, nxt], 1)
    print(f"greedy copy exact match {(prev[:, 1:] == src).all(1).float().mean():.3f}")
