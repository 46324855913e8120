"""Cosine warm restarts with snapshot ensemble: the loss jumps up at every restart."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(13)
x = torch.randn(5000, 10)
y = ((x[:, 0] * x[:, 1] > 0).long() + 2 * (x[:, 2] + x[:, 3] ** 2 > 1).long())
net = nn.Sequential(nn.Linear(10, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU(), nn.Linear(96, 4))
opt = torch.optim.SGD(net.parameters(), lr=0.12, momentum=0.9, weight_decay=2e-4)
sch = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(opt, T_0=8)
probs = []
for ep in range(24):
    perm = torch.randperm(4000)
    tot = 0.0
    for k in range(62):
        i = perm[k * 64:(k + 1) * 64]
        loss = F.cross_entropy(net(x[i]), y[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
        sch.step(ep + k / 62)
        tot += loss.item() / 62
    with torch.no_grad():
        p = net(x[4000:]).softmax(1)
    acc = (p.argmax(1) == y[4000:]).float().mean()
    note = ""
    if ep % 8 == 7:
        probs.append(p)
        ens = (torch.stack(probs).mean(0).argmax(1) == y[4000:]).float().mean()
        note = f"  snapshot {len(probs)} ensemble acc {ens:.3f}"
    print(f"ep {ep:2d} lr {opt.param_groups[0]['lr']:.4f} loss {tot:.4f} val acc {acc:.3f}{note}")
