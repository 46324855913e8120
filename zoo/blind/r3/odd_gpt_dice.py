# Character model on dice throws: the loaded die is only a little loaded, so there is little to learn.
import math
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(3)
P = torch.full((6, 6), 1 / 6)
for i in range(6):
    P[i, (i + 1) % 6] += 0.15
P = P / P.sum(1, keepdim=True)
throws = [0]
u = torch.rand(20000)
cum = P.cumsum(1).tolist()
for t in range(1, 20000):
    row, v, k = cum[throws[-1]], u[t].item(), 0
    while k < 5 and v > row[k]:
        k += 1
    throws.append(k)
data = torch.tensor(throws)
entropy = -(P * P.log()).sum(1).mean().item()
train, val = data[:18000], data[18000:]
T, D = 16, 32


class MiniGPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok, self.pos = nn.Embedding(6, D), nn.Embedding(T, D)
        self.block = nn.TransformerEncoderLayer(D, 4, 64, dropout=0.0, batch_first=True, norm_first=True)
        self.head = nn.Linear(D, 6)

    def forward(self, x):
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        return self.head(self.block(self.tok(x) + self.pos.weight, src_mask=mask, is_causal=True))


def batch(src, n):
    i = torch.randint(len(src) - T - 1, (n, 1)) + torch.arange(T + 1)
    return src[i][:, :-1], src[i][:, 1:]


net = MiniGPT()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for it in range(251):
    x, y = batch(train, 32)
    loss = F.cross_entropy(net(x).reshape(-1, 6), y.reshape(-1))
    opt.zero_grad()
    loss.backward()
    opt.step()
    if it % 50 == 0:
        with torch.no_grad():
            x, y = batch(val, 200)
            v = F.cross_entropy(net(x).reshape(-1, 6), y.reshape(-1)).item()
        print(f"{it:4d} train {loss.item():.4f} val {v:.4f}  (uniform {math.log(6):.4f}, best possible {entropy:.4f})")
