"""Snapshot ensemble: cosine schedule with warm restarts, one copy of the net kept at the end of each cycle."""
import copy
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(8)
torch.set_num_threads(1)
N, C = 2600, 4
x = torch.randn(N, 10)
w = torch.randn(10, C)
logit = x @ w + 2.0 * torch.sin(2 * x[:, :C]) + 1.5 * x[:, 4:4 + C] * x[:, 1:1 + C]
y = torch.distributions.Categorical(logits=logit).sample()
tr, te = TensorDataset(x[:2000], y[:2000]), (x[2000:], y[2000:])
loader = DataLoader(tr, batch_size=50, shuffle=True)
net = nn.Sequential(nn.Linear(10, 48), nn.ReLU(), nn.Dropout(0.1), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, C))
opt = torch.optim.SGD(net.parameters(), lr=0.25, momentum=0.9, weight_decay=2e-3)
sched = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(opt, T_0=6 * len(loader), eta_min=1e-3)
shots = []
for epoch in range(1, 25):
    net.train()
    ls = []
    for xb, yb in loader:
        loss = F.cross_entropy(net(xb), yb)
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        ls.append(loss.item())
    net.eval()
    with torch.no_grad():
        out = net(te[0])
    print(f"epoch {epoch:2d}  train {np.mean(ls):.4f}  test loss {F.cross_entropy(out, te[1]):.4f}  acc {(out.argmax(1) == te[1]).float().mean():.4f}")
    if epoch % 6 == 0:
        shots.append(copy.deepcopy(net))
        with torch.no_grad():
            p = torch.stack([s(te[0]).softmax(-1) for s in shots]).mean(0)
        print(f"   cycle {len(shots)} ends: ensemble nll {F.nll_loss(p.log(), te[1]):.4f}  acc {(p.argmax(1) == te[1]).float().mean():.4f}")
best = (logit[2000:].argmax(1) == te[1]).float().mean()
print(f"final ensemble acc {(p.argmax(1) == te[1]).float().mean():.4f}  (true model {best:.4f})")
