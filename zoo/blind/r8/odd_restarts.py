"""SGD with warm restarts and a snapshot at the end of each cycle: the loss jumps up at each restart, the ensemble is best."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(3)
C = torch.randn(8, 3, 24)


def data(n):
    y = torch.randint(0, 8, (n,))
    pick = torch.randint(0, 3, (n,))
    return C[y, pick] * 0.8 + 0.9 * torch.randn(n, 24), y


x_tr, y_tr = data(2400)
x_va, y_va = data(1500)
net = nn.Sequential(nn.Linear(24, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Dropout(0.3), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 8))
opt = torch.optim.SGD(net.parameters(), lr=0.4, momentum=0.9, weight_decay=5e-4)
CYCLE = 6
sched = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(opt, T_0=CYCLE, eta_min=1e-4)
steps = len(torch.arange(len(x_tr)).split(48))
snapshots = []
for epoch in range(4 * CYCLE):
    net.train()
    run = 0.0
    for b, idx in enumerate(torch.randperm(len(x_tr)).split(48)):
        sched.step(epoch + b / steps)
        loss = F.cross_entropy(net(x_tr[idx]), y_tr[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        run += loss.item()
    net.eval()
    with torch.no_grad():
        acc = (net(x_va).argmax(1) == y_va).float().mean()
    print(f"epoch {epoch:2d} last lr {opt.param_groups[0]['lr']:.4f} train {run / steps:.3f} val acc {acc:.3f}")
    if epoch % CYCLE == CYCLE - 1:
        snapshots.append(copy.deepcopy(net))
with torch.no_grad():
    mean = sum(F.softmax(s(x_va), 1) for s in snapshots)
print(f"ensemble of {len(snapshots)} snapshots: val acc {(mean.argmax(1) == y_va).float().mean():.3f}")
