import math
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(31)


class LoRA(nn.Module):
    def __init__(self, base, rank=4, alpha=8):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.down = nn.Parameter(torch.randn(rank, base.in_features) / math.sqrt(base.in_features))
        self.up = nn.Parameter(torch.zeros(base.out_features, rank))
        self.gain = alpha / rank

    def forward(self, x):
        return self.base(x) + self.gain * (x @ self.down.T @ self.up.T)


def toy(n, rot):
    x = torch.randn(n, 16)
    h = x @ rot
    y = (h[:, 0] * h[:, 1] > 0).long() + 2 * (h[:, 2] + h[:, 3] > 0).long()
    return x, y


def make_rotation(angle):
    r = torch.eye(16)
    c, s = math.cos(angle), math.sin(angle)
    for a, b in ((0, 5), (1, 6), (2, 7)):
        r[a, a], r[a, b], r[b, a], r[b, b] = c, -s, s, c
    return r


def acc(net, x, y):
    with torch.no_grad():
        return (net(x).argmax(1) == y).float().mean().item()


net = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))
x, y = toy(4000, make_rotation(0.0))
opt = torch.optim.AdamW(net.parameters(), lr=3e-3)
for ep in range(6):
    for b in torch.randperm(len(x)).split(100):
        loss = F.cross_entropy(net(x[b]), y[b])
        opt.zero_grad(); loss.backward(); opt.step()
print(f"source task acc {acc(net, *toy(1000, make_rotation(0.0))):.3f}")

for i in (0, 2):
    net[i] = LoRA(net[i])
net[4] = nn.Linear(64, 4)
trainable = [p for p in net.parameters() if p.requires_grad]
print(f"{sum(p.numel() for p in trainable)} of {sum(p.numel() for p in net.parameters())} parameters are trained")
x, y = toy(1200, make_rotation(0.8))
xv, yv = toy(1000, make_rotation(0.8))
opt = torch.optim.AdamW(trainable, lr=1e-2, weight_decay=0.0)
for ep in range(12):
    tot = 0.0
    for b in torch.randperm(len(x)).split(60):
        loss = F.cross_entropy(net(x[b]), y[b])
        opt.zero_grad(); loss.backward(); opt.step()
        tot += loss.item() * len(b) / len(x)
    if ep % 2 == 1:
        print(f"adapter epoch {ep} loss {tot:.3f} val {acc(net, xv, yv):.3f}")
