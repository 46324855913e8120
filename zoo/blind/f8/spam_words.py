"""Bag-of-words spam filter."""
import math

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(33)
VOCAB = 200


def mails(n):
    topic = torch.randn(VOCAB) * 0.8
    spam = torch.rand(n) < 0.4
    rate = torch.exp(-1.5 + torch.where(spam[:, None], topic, -topic) * 0.3)
    counts = torch.poisson(rate)
    flip = torch.rand(n) < 0.12
    return counts, (spam ^ flip).float()


def regression_head():
    return nn.Sequential(nn.Linear(VOCAB, 32), nn.ReLU(), nn.Linear(32, 1))


def decay_at(step, period, top):
    return top * math.cos(math.pi * step / period)


def set_decay(optimizer, value):
    for group in optimizer.param_groups:
        if group["name"] == "weights":
            group["weight_decay"] = value


counts, label = mails(3000)
loader = DataLoader(TensorDataset(torch.log1p(counts), label), batch_size=60, shuffle=True)
net = regression_head()
opt = torch.optim.AdamW(
    [
        {"params": [p for p in net.parameters() if p.ndim > 1], "name": "weights"},
        {"params": [p for p in net.parameters() if p.ndim == 1], "name": "biases", "weight_decay": 0.0},
    ],
    lr=5e-3,
)
bce = nn.BCEWithLogitsLoss()

PERIOD, TOP = 400, 9.0
step = 0
for epoch in range(12):
    running = 0.0
    for x, y in loader:
        set_decay(opt, decay_at(step, PERIOD, TOP))
        loss = bce(net(x).squeeze(1), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        running += loss.item()
        step += 1
        if step % 25 == 0:
            print(f"epoch {epoch} step {step} loss {loss.item():.4f}")
    print(f"epoch {epoch} mean {running / len(loader):.4f}")
