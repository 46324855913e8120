"""Crowd-sourced labels: a third of the training labels are random, the gold test set is clean.

The training accuracy cannot pass about 0.71 and is not meant to. Generalised cross-entropy keeps the
net from memorising the wrong ones.
"""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
torch.manual_seed(1)
C, D = 8, 40
centres = torch.randn(C, D) * 0.9


def draw(n):
    y = torch.randint(0, C, (n,))
    return centres[y] + torch.randn(n, D), y


def gce(logits, y, q=0.7):
    p = logits.softmax(1).gather(1, y[:, None]).squeeze(1)
    return ((1 - p ** q) / q).mean()


x, clean = draw(8000)
noisy = torch.where(torch.rand(8000) < 0.33, torch.randint(0, C, (8000,)), clean)
print(f"share of training labels that were changed: {(noisy != clean).float().mean():.2f}")
xv, yv = draw(2000)

model = nn.Sequential(nn.Linear(D, 128), nn.ReLU(), nn.Dropout(0.3), nn.Linear(128, C))
opt = torch.optim.Adam(model.parameters(), 1e-3)
loader = DataLoader(TensorDataset(x, noisy), 128, shuffle=True)
for epoch in range(20):
    model.train()
    hit = 0
    for a, b in loader:
        out = model(a)
        loss = gce(out, b)
        opt.zero_grad()
        loss.backward()
        opt.step()
        hit += (out.argmax(1) == b).sum().item()
    model.eval()
    with torch.no_grad():
        acc = (model(xv).argmax(1) == yv).float().mean().item()
    print(f"epoch {epoch}: accuracy against crowd labels {hit / 8000:.3f}, against gold labels {acc:.3f}")
print(f"gold test accuracy {acc:.3f}")
