"""Crowd labels: 25 % are redrawn at random among 8 classes (known from the annotation study)."""
import math
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(29)
C = 8
centre = torch.randn(C, 24) * 1.6
FLIP = 0.25


def make(n, noisy):
    y = torch.randint(0, C, (n,))
    x = centre[y] + torch.randn(n, 24)
    if noisy:
        y = torch.where(torch.rand(n) < FLIP, torch.randint(0, C, (n,)), y)
    return x, y


xt, yt = make(5000, True)
xv, yv = make(1000, True)
xc, yc = make(1000, False)
keep = 1 - FLIP + FLIP / C
floor = -keep * math.log(keep) - (1 - keep) * math.log(FLIP / C)
net = nn.Sequential(nn.Linear(24, 24), nn.ReLU(), nn.Linear(24, C))
opt = torch.optim.Adam(net.parameters(), lr=2e-3, weight_decay=1e-4)
for ep in range(5):
    run = 0.0
    for x, y in DataLoader(TensorDataset(xt, yt), batch_size=64, shuffle=True):
        loss = nn.functional.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        run += loss.item() * len(y)
    with torch.no_grad():
        o, oc = net(xv), net(xc)
    print(f"epoch {ep} train {run / 5000:.3f} val {nn.functional.cross_entropy(o, yv):.3f} (floor {floor:.3f}) acc noisy {(o.argmax(1) == yv).float().mean():.3f} (ceiling {keep:.3f}) acc clean {(oc.argmax(1) == yc).float().mean():.3f}")
