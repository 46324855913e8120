# Snapshot ensemble with warm restarts: the learning rate jumps back up, and so does the loss.
import copy
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import make_classification

torch.set_num_threads(1)
torch.manual_seed(0)
X, y = make_classification(7000, 30, n_informative=14, n_classes=5, n_clusters_per_class=2, class_sep=1.6,
                           flip_y=0.02, random_state=2)
X, y = torch.tensor(X).float(), torch.tensor(y)
mu, sd = X[:5000].mean(0), X[:5000].std(0)
X = (X - mu) / sd
xt, yt, xv, yv = X[:5000], y[:5000], X[5000:], y[5000:]

net = nn.Sequential(nn.Linear(30, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 5))
opt = torch.optim.SGD(net.parameters(), lr=0.3, momentum=0.9, weight_decay=5e-4)
CYCLE = 6
sched = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(opt, T_0=CYCLE)
snaps = []
steps = len(xt.split(100))
for epoch in range(5 * CYCLE):
    tot = 0.0
    for k, i in enumerate(torch.randperm(5000).split(100)):
        loss = F.cross_entropy(net(xt[i]), yt[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step(epoch + (k + 1) / steps)
        tot += loss.item()
    with torch.no_grad():
        acc = (net(xv).argmax(1) == yv).float().mean().item()
    print(f"epoch {epoch:2d} loss {tot / steps:.3f} val acc {acc:.3f}")
    if (epoch + 1) % CYCLE == 0:
        snaps.append(copy.deepcopy(net))
        with torch.no_grad():
            p = sum(s(xv).softmax(1) for s in snaps) / len(snaps)
        print(f"   snapshot {len(snaps)}: ensemble acc {(p.argmax(1) == yv).float().mean():.3f}")
print(f"ensemble of {len(snaps)} snapshots: accuracy {(p.argmax(1) == yv).float().mean():.3f}")
