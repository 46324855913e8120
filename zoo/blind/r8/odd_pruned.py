"""Weights are edited after each step on purpose: max-norm on the rows, and from epoch 6 on 90 % of the hidden weights are held at zero by a mask."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(12)
P = torch.randn(7, 30)


def data(n):
    y = torch.randint(0, 7, (n,))
    return torch.tanh(P[y] + 1.1 * torch.randn(n, 30)), y


x_tr, y_tr = data(3000)
x_va, y_va = data(1500)
net = nn.Sequential(nn.Linear(30, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 7))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
masks = {}


@torch.no_grad()
def edit():
    for m in net:
        if isinstance(m, nn.Linear):
            m.weight.mul_((2.0 / m.weight.norm(dim=1, keepdim=True).clamp_min(1e-8)).clamp(max=1.0))
    for m, mask in masks.items():
        m.weight.mul_(mask)


for epoch in range(14):
    if epoch == 6:
        for m in (net[0], net[2]):
            cut = m.weight.abs().flatten().kthvalue(int(0.9 * m.weight.numel())).values
            masks[m] = (m.weight.abs() > cut).float()
        edit()
    run = 0.0
    for idx in torch.randperm(len(x_tr)).split(64):
        loss = F.cross_entropy(net(x_tr[idx]), y_tr[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        edit()
        run += loss.item() * len(idx)
    with torch.no_grad():
        acc = (net(x_va).argmax(1) == y_va).float().mean()
    zero = sum((m.weight == 0).sum().item() for m in (net[0], net[2])) / sum(m.weight.numel() for m in (net[0], net[2]))
    print(f"epoch {epoch:2d} train {run / len(x_tr):.4f} val acc {acc:.3f} zeros {zero:.2f}")
