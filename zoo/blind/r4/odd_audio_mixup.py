"""Clip tagging with mixup, strong time masking and dropout: the training loss stays well above the validation loss."""
import numpy as np
import torch
import torch.nn as nn

torch.manual_seed(0)
rng = np.random.default_rng(0)
MEL, T, C = 20, 32, 4


def clip():
    s = rng.normal(0, 0.5, (MEL, T)).astype("float32")
    y = (rng.random(C) < 0.4).astype("float32")
    t = np.arange(T)
    if y[0]:
        s[3:5] += 1.5
    if y[1]:
        s[12, ::3] += 2.5
    if y[2]:
        s[(t // 2) % MEL, t] += 2.5
    if y[3]:
        s[:, rng.integers(0, T - 3):][:, :3] += 1.2
    return s, y


def pack(n):
    s, y = zip(*(clip() for _ in range(n)))
    return torch.from_numpy(np.stack(s)).unsqueeze(1), torch.from_numpy(np.stack(y))


net = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(16, 24, 3, padding=1), nn.BatchNorm2d(24), nn.ReLU(), nn.AdaptiveMaxPool2d((5, 1)),
    nn.Flatten(), nn.Dropout(0.4), nn.Linear(120, C))
x, y = pack(480)
vx, vy = pack(160)
crit = nn.BCEWithLogitsLoss()
opt = torch.optim.AdamW(net.parameters(), lr=4e-3, weight_decay=0.05)
sched = torch.optim.lr_scheduler.OneCycleLR(opt, 8e-3, total_steps=12 * 16)
for epoch in range(12):
    net.train()
    tot = 0.0
    for i in torch.randperm(480).split(30):
        lam = float(rng.beta(1.0, 1.0))
        j = i[torch.randperm(len(i))]
        xb, yb = lam * x[i] + (1 - lam) * x[j], lam * y[i] + (1 - lam) * y[j]
        cut = int(rng.integers(0, T - 6))
        xb[..., cut:cut + 6] = 0
        loss = crit(net(xb), yb)
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        tot += loss.item()
    net.eval()
    with torch.no_grad():
        z = net(vx)
    print(f"epoch {epoch} train {tot / 16:.3f} val {crit(z, vy):.3f} label accuracy {((z > 0) == (vy > 0.5)).float().mean():.3f}")
