"""Sign-momentum optimizer written by hand (Lion), decoupled decay, parameters changed through .data; no torch.optim at all."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(15)


def data(n):
    y = torch.randint(0, 5, (n,))
    img = 0.6 * torch.randn(n, 1, 12, 12)
    for i, c in enumerate(y.tolist()):
        r, k = torch.randint(1, 5, (2,)).tolist()
        if c == 0: img[i, 0, r:r + 6, k] += 1.6
        if c == 1: img[i, 0, r, k:k + 6] += 1.6
        if c == 2: img[i, 0, range(r, r + 6), range(k, k + 6)] += 1.6
        if c == 3: img[i, 0, r:r + 3, k:k + 3] += 1.2
        if c == 4: img[i, 0, range(r, r + 6), range(k + 5, k - 1, -1)] += 1.6
    return img, y


x_tr, y_tr = data(1600)
x_va, y_va = data(800)
net = nn.Sequential(nn.Conv2d(1, 16, 5, padding=2), nn.GroupNorm(4, 16), nn.ReLU(), nn.MaxPool2d(2),
                    nn.Conv2d(16, 32, 3, padding=1), nn.GroupNorm(4, 32), nn.ReLU(), nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(32, 5))
weights = list(net.parameters())
moment = [torch.zeros_like(p) for p in weights]
EPOCHS, BATCH = 10, 50
total, step = EPOCHS * len(x_tr) // BATCH, 0
for epoch in range(EPOCHS):
    run = 0.0
    for idx in torch.randperm(len(x_tr)).split(BATCH):
        lr = 1.5e-3 * 0.5 * (1 + math.cos(math.pi * step / total))
        loss = F.cross_entropy(net(x_tr[idx]), y_tr[idx])
        grads = torch.autograd.grad(loss, weights)
        for p, g, m in zip(weights, grads, moment):
            update = (0.9 * m + 0.1 * g).sign()
            p.data.mul_(1 - lr * 0.3).sub_(update, alpha=lr)
            m.mul_(0.99).add_(g, alpha=0.01)
        step += 1
        run += loss.item() * len(idx)
    with torch.no_grad():
        acc = (net(x_va).argmax(1) == y_va).float().mean()
    print(f"epoch {epoch} lr {lr:.1e} train {run / len(x_tr):.4f} val acc {acc:.3f}")
