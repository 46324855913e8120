"""Gradual unfreezing: most layers have no gradient at first, groups are added to the optimizer later."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(16)
torch.set_num_threads(1)

proj = torch.randn(12, 40) / 3


def make(n, shift):
    z = torch.randn(n, 12)
    x = torch.tanh(z @ proj + shift)
    return x, (z[:, 0] * z[:, 1] > 0).long() + 2 * (z[:, 2] > 0.3).long()


x_src, y_src = make(5000, 0.0)
x_train, y_train = make(500, 0.3)
x_val, y_val = make(600, 0.3)
x_test, y_test = make(1500, 0.3)

net = nn.Sequential(nn.Linear(40, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))


def accuracy(x, y):
    with torch.no_grad():
        return (net(x).argmax(1) == y).float().mean().item()


def epoch_over(x, y, opt):
    perm, total = torch.randperm(len(x)), 0.0
    for i in range(0, len(x), 50):
        rows = perm[i:i + 50]
        loss = F.cross_entropy(net(x[rows]), y[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item() * len(rows)
    return total / len(x)


opt = torch.optim.Adam(net.parameters(), lr=2e-3)
for epoch in range(10):
    loss = epoch_over(x_src, y_src, opt)
print(f"pretrained loss {loss:.4f}; on the shifted task val acc {accuracy(x_val, y_val):.4f}")

# stage 1: a new head on a frozen body
for p in net.parameters():
    p.requires_grad_(False)
net[4] = nn.Linear(64, 4)
opt = torch.optim.Adam(net[4].parameters(), lr=3e-3)
for epoch in range(18):
    if epoch == 6:
        net[2].requires_grad_(True)
        opt.add_param_group({"params": net[2].parameters(), "lr": 5e-4})
    if epoch == 12:
        net[0].requires_grad_(True)
        opt.add_param_group({"params": net[0].parameters(), "lr": 1e-4})
    loss = epoch_over(x_train, y_train, opt)
    live = sum(p.numel() for p in net.parameters() if p.requires_grad)
    if epoch % 3 == 2:
        print(f"epoch {epoch:2d} trainable {live} train {loss:.4f} val acc {accuracy(x_val, y_val):.4f}")

print(f"test accuracy {accuracy(x_test, y_test):.4f}")
