"""Mixup, label smoothing and much dropout: training loss stays high and validation is far better than training."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(13)
P = torch.randn(10, 40)


def data(n):
    y = torch.randint(0, 10, (n,))
    return P[y] + 1.3 * torch.randn(n, 40), y


x_tr, y_tr = data(1200)
x_va, y_va = data(1500)
net = nn.Sequential(nn.Linear(40, 256), nn.ReLU(), nn.Dropout(0.5), nn.Linear(256, 128), nn.ReLU(), nn.Dropout(0.5), nn.Linear(128, 10))
opt = torch.optim.AdamW(net.parameters(), lr=2e-3, weight_decay=0.05)
beta = torch.distributions.Beta(0.8, 0.8)
for epoch in range(20):
    net.train()
    run = right = 0.0
    for idx in torch.randperm(len(x_tr)).split(50):
        x, y = x_tr[idx], y_tr[idx]
        lam, other = beta.sample(), torch.randperm(len(idx))
        out = net(lam * x + (1 - lam) * x[other])
        loss = lam * F.cross_entropy(out, y, label_smoothing=0.1) + (1 - lam) * F.cross_entropy(out, y[other], label_smoothing=0.1)
        opt.zero_grad()
        loss.backward()
        opt.step()
        run += loss.item() * len(idx)
        right += (out.argmax(1) == y).sum().item()
    net.eval()
    with torch.no_grad():
        out = net(x_va)
    if epoch % 2:
        print(f"epoch {epoch:2d} train loss {run / len(x_tr):.3f} acc {right / len(x_tr):.3f} | val loss {F.cross_entropy(out, y_va):.3f} "
              f"acc {(out.argmax(1) == y_va).float().mean():.3f}")
