"""Gradual unfreezing: the optimizer is built anew in each stage, first for the head, then for more layers with smaller rates."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(17)
W1 = torch.randn(20, 8)
W2 = torch.randn(8, 4)


def task(n, shift):
    x = torch.randn(n, 20)
    return x, (torch.relu(x @ W1 + shift) @ W2).argmax(1)


def layers():
    return nn.Sequential(nn.Sequential(nn.Linear(20, 64), nn.ReLU()), nn.Sequential(nn.Linear(64, 64), nn.ReLU()), nn.Linear(64, 4))


def fit(net, opt, x, y, epochs):
    for _ in range(epochs):
        for idx in torch.randperm(len(x)).split(64):
            loss = F.cross_entropy(net(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
    return loss.item()


@torch.no_grad()
def accuracy(net, x, y):
    return (net(x).argmax(1) == y).float().mean().item()


x_src, y_src = task(6000, 0.0)
x_new, y_new = task(500, 1.0)
x_va, y_va = task(2000, 1.0)
net = layers()
fit(net, torch.optim.Adam(net.parameters(), lr=2e-3), x_src, y_src, 10)
print(f"old task learned, accuracy on the new task without tuning {accuracy(net, x_va, y_va):.3f}")
net[2] = nn.Linear(64, 4)
for stage, groups in enumerate([[(2, 1e-2)], [(2, 3e-3), (1, 1e-3)], [(2, 1e-3), (1, 5e-4), (0, 5e-4)]]):
    open_layers = [i for i, _ in groups]
    for i, part in enumerate(net):
        part.requires_grad_(i in open_layers)
    opt = torch.optim.Adam([{"params": net[i].parameters(), "lr": lr} for i, lr in groups])
    for k in range(3):
        last = fit(net, opt, x_new, y_new, 5)
        print(f"stage {stage} open {sorted(open_layers)} last loss {last:.3f} train {accuracy(net, x_new, y_new):.3f} val {accuracy(net, x_va, y_va):.3f}")
scratch = layers()
fit(scratch, torch.optim.Adam(scratch.parameters(), lr=2e-3), x_new, y_new, 45)
print(f"trained from nothing on the small set: {accuracy(scratch, x_va, y_va):.3f}")
