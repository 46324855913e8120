"""Normalised-gradient descent: the clip threshold is far below the usual gradient norm, so every step is clipped on purpose and the
step length is set by the schedule alone. Goal: test accuracy above 0.95 on the digits data."""
import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import load_digits

torch.set_num_threads(1)
torch.manual_seed(20)
d = load_digits()
X, Y = torch.tensor(d.images / 8 - 1, dtype=torch.float32).unsqueeze(1), torch.tensor(d.target)
perm = torch.randperm(len(X))
tr, va, te = perm[:1200], perm[1200:1500], perm[1500:]
net = nn.Sequential(nn.Conv2d(1, 24, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(24, 32, 3, padding=1), nn.ReLU(),
                    nn.Flatten(), nn.Linear(32 * 16, 10))
MAX_NORM, steps = 1e-3, 14 * 24
opt = torch.optim.SGD(net.parameters(), lr=150.0)
sched = torch.optim.lr_scheduler.LinearLR(opt, 1.0, 0.02, total_iters=steps)
clipped = 0
for epoch in range(14):
    losses = []
    for idx in tr[torch.randperm(len(tr))].split(50):
        loss = nn.functional.cross_entropy(net(X[idx]), Y[idx])
        opt.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(net.parameters(), MAX_NORM)
        clipped += int(norm > MAX_NORM)
        opt.step()
        sched.step()
        losses.append(loss.item())
    with torch.no_grad():
        acc = (net(X[va]).argmax(1) == Y[va]).float().mean().item()
    print(f"epoch {epoch} train {np.mean(losses):.4f} val acc {acc:.3f} step length {sched.get_last_lr()[0] * MAX_NORM:.4f}")
with torch.no_grad():
    print(f"clipped {clipped}/{steps} steps, test acc {(net(X[te]).argmax(1) == Y[te]).float().mean():.3f}")
