import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F

ap = argparse.ArgumentParser()
ap.add_argument("--rank", type=int, default=4)
ap.add_argument("--pre", type=int, default=250)
ap.add_argument("--adapt", type=int, default=300)
cfg = ap.parse_args([])
torch.manual_seed(21)

D, C = 20, 5
centres = 1.3 * torch.randn(C, D)
rot = torch.linalg.qr(torch.randn(D, D))[0]


def batch(n, domain):
    y = torch.randint(0, C, (n,))
    x = centres[y] + 0.9 * torch.randn(n, D)
    if domain == "new":
        x = x @ rot + 0.5
    return x, y


class Adapted(nn.Module):
    """frozen linear layer plus a low-rank update; the second factor starts at zero"""

    def __init__(self, lin, r):
        super().__init__()
        self.lin = lin
        for p in self.lin.parameters():
            p.requires_grad = False
        self.A = nn.Parameter(torch.randn(r, lin.in_features) / lin.in_features ** 0.5)
        self.B = nn.Parameter(torch.zeros(lin.out_features, r))

    def forward(self, x):
        return self.lin(x) + 4.0 * F.linear(F.linear(x, self.A), self.B)


def acc(net, domain):
    with torch.no_grad():
        x, y = TEST[domain]
        return (net(x).argmax(1) == y).float().mean().item()


TEST = {d: batch(1500, d) for d in ("old", "new")}
net = nn.Sequential(nn.Linear(D, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, C))
opt = torch.optim.AdamW(net.parameters(), lr=2e-3)
for s in range(cfg.pre):
    x, y = batch(64, "old")
    loss = F.cross_entropy(net(x), y)
    opt.zero_grad(); loss.backward(); opt.step()
print(f"pre-trained: loss {loss.item():.4f} old {acc(net, 'old'):.3f} new {acc(net, 'new'):.3f}")

for i in (0, 2, 4):
    net[i] = Adapted(net[i], cfg.rank)
small = [p for p in net.parameters() if p.requires_grad]
print("trainable", sum(p.numel() for p in small), "of", sum(p.numel() for p in net.parameters()))
opt = torch.optim.AdamW(small, lr=5e-3, weight_decay=0.0)
for s in range(1, cfg.adapt + 1):
    x, y = batch(64, "new")
    loss = F.cross_entropy(net(x), y)
    opt.zero_grad(); loss.backward(); opt.step()
    if s % 60 == 0:
        print(f"adapt {s} loss {loss.item():.4f} new {acc(net, 'new'):.3f}")
