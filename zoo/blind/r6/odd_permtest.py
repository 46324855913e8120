"""Permutation test: the same net is trained once on the true labels and nine times on shuffled labels (these runs must fail).
Goal: p value of the true run 0.1 (best of ten), i.e. the real accuracy is above all shuffled ones."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
g = torch.Generator().manual_seed(24)
n, d = 400, 30
X = torch.randn(n, d, generator=g)
y = ((X[:, 0] + X[:, 1] * X[:, 2] + 0.6 * torch.randn(n, generator=g)) > 0).long()


def fit(X, y, seed):
    torch.manual_seed(seed)
    tr, te = slice(0, 280), slice(280, n)
    net = nn.Sequential(nn.Linear(d, 32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 2))
    opt = torch.optim.Adam(net.parameters(), lr=5e-3, weight_decay=1e-2)
    for epoch in range(40):
        net.train()
        for idx in torch.randperm(280).split(40):
            loss = F.cross_entropy(net(X[tr][idx]), y[tr][idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
    net.eval()
    with torch.no_grad():
        out = net(X[te])
    return loss.item(), F.cross_entropy(out, y[te]).item(), (out.argmax(1) == y[te]).float().mean().item()


null = []
for k in range(9):
    shuffled = y[torch.randperm(n, generator=g)]
    tl, vl, acc = fit(X, shuffled, seed=k)
    null.append(acc)
    print(f"shuffled run {k}: train {tl:.3f} test {vl:.3f} accuracy {acc:.3f}")
tl, vl, acc = fit(X, y, seed=100)
p = (1 + sum(a >= acc for a in null)) / (1 + len(null))
print(f"true labels: train {tl:.3f} test {vl:.3f} accuracy {acc:.3f}; p = {p:.2f}")
