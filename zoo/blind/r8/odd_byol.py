"""BYOL-like: target network without gradients, moved only by averaging; the loss is negative and says little, a linear probe judges."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(18)
K = 6
P = torch.randn(K, 24)


def data(n):
    y = torch.randint(0, K, (n,))
    return P[y] * 0.5 + 0.7 * torch.randn(n, 24), y


def view(x):
    keep = (torch.rand_like(x) > 0.25).float()
    return x * keep + 0.3 * torch.randn_like(x)


def mlp(i, h, o):
    return nn.Sequential(nn.Linear(i, h), nn.BatchNorm1d(h), nn.ReLU(), nn.Linear(h, o))


x_tr, y_tr = data(2500)
x_va, y_va = data(800)
online = mlp(24, 96, 32)
target = copy.deepcopy(online).requires_grad_(False)
predictor = mlp(32, 64, 32)
opt = torch.optim.Adam([*online.parameters(), *predictor.parameters()], lr=2e-3)


def probe(net):
    net.eval()
    with torch.no_grad():
        a, b = net(x_tr[:60]), net(x_va)
        m, s = a.mean(0), a.std(0) + 1e-6
        a, b = (a - m) / s, (b - m) / s
        spread = F.normalize(b, dim=1).std(0).mean().item() * 32 ** 0.5
    net.train()
    head = nn.Linear(32, K)
    o = torch.optim.Adam(head.parameters(), lr=0.03)
    for _ in range(60):
        loss = F.cross_entropy(head(a), y_tr[:60])
        o.zero_grad()
        loss.backward()
        o.step()
    return (head(b).argmax(1) == y_va).float().mean().item(), spread


print("probe before: acc %.3f spread %.2f" % probe(online))
for epoch in range(12):
    run = 0.0
    for idx in torch.randperm(len(x_tr)).split(125):
        a, b = view(x_tr[idx]), view(x_tr[idx])
        with torch.no_grad():
            ta, tb = target(a), target(b)
        loss = -(F.cosine_similarity(predictor(online(a)), tb).mean() + F.cosine_similarity(predictor(online(b)), ta).mean()) / 2
        opt.zero_grad()
        loss.backward()
        opt.step()
        with torch.no_grad():
            for p, q in zip(target.parameters(), online.parameters()):
                p.lerp_(q, 0.03)
        run += loss.item() / 20
    if epoch % 3 == 2:
        print(f"epoch {epoch:2d} loss {run:+.4f} probe acc %.3f spread %.2f" % probe(online))
