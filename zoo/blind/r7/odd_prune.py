"""Iterative magnitude pruning: nine of ten weights are set to zero by hand and held there."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(14)
torch.set_num_threads(1)

DIM, CLASSES = 24, 5
teacher = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, CLASSES))
for p in teacher.parameters():
    p.data *= 3


def make(n):
    x = torch.randn(n, DIM)
    with torch.no_grad():
        return x, teacher(x[:, :6]).argmax(1)     # only six inputs matter


(x_train, y_train), (x_val, y_val), (x_test, y_test) = make(4000), make(800), make(1500)
net = nn.Sequential(nn.Linear(DIM, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU(), nn.Linear(96, CLASSES))
linears = [m for m in net if isinstance(m, nn.Linear)]
masks = [torch.ones_like(m.weight) for m in linears]


@torch.no_grad()
def apply_masks():
    for m, mask in zip(linears, masks):
        m.weight.mul_(mask)


@torch.no_grad()
def prune(fraction):
    """cut the given fraction of the weights that are still alive"""
    for i, m in enumerate(linears):
        alive = m.weight[masks[i] > 0].abs()
        threshold = alive.quantile(fraction)
        masks[i] = masks[i] * (m.weight.abs() > threshold).float()
    apply_masks()


@torch.no_grad()
def accuracy(x, y):
    return (net(x).argmax(1) == y).float().mean().item()


for stage in range(6):
    if stage:
        prune(0.35)
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    before = accuracy(x_val, y_val)
    for epoch in range(4):
        perm = torch.randperm(len(x_train))
        total = 0.0
        for i in range(0, len(perm), 200):
            rows = perm[i:i + 200]
            loss = F.cross_entropy(net(x_train[rows]), y_train[rows])
            opt.zero_grad()
            loss.backward()
            opt.step()
            apply_masks()
            total += loss.item() * len(rows)
    kept = sum(m.sum().item() for m in masks) / sum(m.numel() for m in masks)
    print(f"stage {stage} kept {kept:.3f} train {total / len(perm):.4f} val acc after cut {before:.4f} after tuning {accuracy(x_val, y_val):.4f}")

zeros = sum((m.weight == 0).sum().item() for m in linears) / sum(m.weight.numel() for m in linears)
print(f"test accuracy {accuracy(x_test, y_test):.4f} zero weights {zeros:.3f}")
