"""Adapting the last layers of a pretrained encoder to 40 labelled examples, 150 passes over them."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(2)
D, K_BASE, K_NEW = 32, 20, 4
mixing = torch.randn(D, D) / D ** 0.5
protos = torch.randn(K_BASE + K_NEW, 8) * 1.5
lift = torch.randn(8, D)


def sample(classes, per):
    y = classes.repeat_interleave(per)
    z = protos[y] + 0.6 * torch.randn(len(y), 8)
    return torch.tanh(z @ lift / 3) @ mixing + 0.25 * torch.randn(len(y), D), y


encoder = nn.Sequential(nn.Linear(D, 96), nn.ReLU(), nn.Linear(96, 64), nn.ReLU())
head = nn.Linear(64, K_BASE)
opt = torch.optim.Adam([*encoder.parameters(), *head.parameters()], lr=2e-3)
x, y = sample(torch.arange(K_BASE), 500)
for epoch in range(6):
    for i in torch.randperm(len(x)).split(100):
        loss = F.cross_entropy(head(encoder(x[i])), y[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(f"pretraining epoch {epoch} loss {loss.item():.3f}")

new = torch.arange(K_BASE, K_BASE + K_NEW)
xs, ys = sample(new, 10)
xq, yq = sample(new, 300)
ys, yq = ys - K_BASE, yq - K_BASE
encoder.requires_grad_(False)
clf = nn.Sequential(nn.LayerNorm(64), nn.Linear(64, K_NEW))
opt = torch.optim.SGD(clf.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-3)
with torch.no_grad():
    fs, fq = encoder(xs), encoder(xq)
for epoch in range(150):
    for i in torch.randperm(len(xs)).split(10):
        loss = F.cross_entropy(clf(fs[i]), ys[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
    if epoch % 15 == 14:
        with torch.no_grad():
            a, b = clf(fs), clf(fq)
        print(f"pass {epoch + 1:3d} support loss {F.cross_entropy(a, ys):.3f} acc {(a.argmax(1) == ys).float().mean():.2f} "
              f"query loss {F.cross_entropy(b, yq):.3f} acc {(b.argmax(1) == yq).float().mean():.3f}")
