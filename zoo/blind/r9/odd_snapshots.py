"""Snapshot ensemble: SGD with warm restarts, one model kept at the end of each cycle, probabilities averaged."""
import copy

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits

torch.set_num_threads(1)
torch.manual_seed(9)
rng = np.random.default_rng(9)

digits = load_digits()
x = torch.tensor(digits.images / 16.0, dtype=torch.float32)[:, None]
y = torch.tensor(digits.target)
order = torch.tensor(rng.permutation(len(x)))
x, y = x[order] + 0.45 * torch.randn(len(x), 1, 8, 8), y[order]
x_tr, y_tr, x_te, y_te = x[:1200], y[:1200], x[1200:], y[1200:]

net = nn.Sequential(
    nn.Conv2d(1, 24, 3, padding=1), nn.ReLU(), nn.Conv2d(24, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
    nn.Flatten(), nn.Dropout(0.3), nn.Linear(32 * 16, 10),
)
opt = torch.optim.SGD(net.parameters(), lr=0.25, momentum=0.9, weight_decay=1e-3)
CYCLE, CYCLES = 6, 5
per_epoch = int(np.ceil(len(x_tr) / 40))
sched = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(opt, T_0=CYCLE * per_epoch)
snapshots = []
for epoch in range(CYCLE * CYCLES):
    net.train()
    total = 0.0
    for idx in torch.randperm(len(x_tr)).split(40):
        loss = F.cross_entropy(net(x_tr[idx]), y_tr[idx])
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        sched.step()
        total += loss.item() * len(idx)
    net.eval()
    with torch.no_grad():
        out = net(x_te)
    print(f"epoch {epoch:2d} lr {opt.param_groups[0]['lr']:.3f} train loss {total / len(x_tr):.3f} "
          f"test loss {F.cross_entropy(out, y_te):.3f} acc {(out.argmax(1) == y_te).float().mean():.3f}")
    if (epoch + 1) % CYCLE == 0:
        snapshots.append(copy.deepcopy(net).eval())
        with torch.no_grad():
            p = torch.stack([m(x_te).softmax(1) for m in snapshots]).mean(0)
        print(f"  snapshot {len(snapshots)}: ensemble accuracy {(p.argmax(1) == y_te).float().mean():.3f}")
