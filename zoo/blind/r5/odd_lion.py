# Tabular classifier trained with a sign-momentum optimizer written here, as a plain class.
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class Lion:
    def __init__(self, params, lr, b1=0.9, b2=0.98, wd=0.3):
        self.params = [p for p in params if p.requires_grad]
        self.m = [torch.zeros_like(p) for p in self.params]
        self.lr, self.b1, self.b2, self.wd = lr, b1, b2, wd

    def zero_grad(self):
        for p in self.params:
            p.grad = None

    @torch.no_grad()
    def step(self):
        for p, m in zip(self.params, self.m):
            u = (self.b1 * m + (1 - self.b1) * p.grad).sign()
            p.sub_(self.lr * (u + self.wd * p))
            m.mul_(self.b2).add_(p.grad, alpha=1 - self.b2)


class Net(nn.Module):
    def __init__(self, cards, nnum):
        super().__init__()
        self.e = nn.ModuleList(nn.Embedding(c, 4) for c in cards)
        self.f = nn.Sequential(nn.Linear(4 * len(cards) + nnum, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 3))

    def forward(self, c, x):
        return self.f(torch.cat([e(c[:, j]) for j, e in enumerate(self.e)] + [x], 1))


torch.manual_seed(13)
torch.set_num_threads(1)
cards, n = [10, 6, 14], 4000
c = torch.stack([torch.randint(0, k, (n,)) for k in cards], 1)
x = torch.randn(n, 5)
lg = sum(torch.randn(k, 3)[c[:, j]] for j, k in enumerate(cards)) + x @ torch.randn(5, 3) + torch.tanh(2 * x[:, :3]) * 2
y = (1.5 * lg - torch.log(-torch.log(torch.rand(n, 3)))).argmax(1)
net = Net(cards, 5)
opt = Lion(net.parameters(), lr=1e-3)
for ep in range(12):
    order, tot = torch.randperm(3200), 0.0
    for i in range(0, 3200, 64):
        j = order[i:i + 64]
        loss = F.cross_entropy(net(c[j], x[j]), y[j])
        opt.zero_grad()
        loss.backward()
        opt.step()
        tot += loss.item() / 50
    opt.lr *= 0.85
    with torch.no_grad():
        out = net(c[3200:], x[3200:])
    print(f"epoch {ep + 1:2d}  train {tot:.4f}  val {F.cross_entropy(out, y[3200:]):.4f}  acc {(out.argmax(1) == y[3200:]).float().mean():.4f}")
print(f"final acc {(out.argmax(1) == y[3200:]).float().mean():.4f}  (rule behind the labels {(lg[3200:].argmax(1) == y[3200:]).float().mean():.4f})")
