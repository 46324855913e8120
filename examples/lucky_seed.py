"""A gain that one seed shows and five do not: few samples, so the seed decides more than the rate.

holter seeds --n 5 --vary lr=0.05,0.07 -- python examples/lucky_seed.py --lr {lr}
"""

import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.05)
rate = parser.parse_args().lr

torch.manual_seed(0)
inputs = torch.randn(160, 10)
labels = (inputs[:, :2].sum(1) + torch.randn(160) > 0).long()
train, valid = (inputs[:96], labels[:96]), (inputs[96:], labels[96:])

model = nn.Sequential(nn.Linear(10, 16), nn.Tanh(), nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=rate)

for _ in range(20):
    model.train()
    for batch in torch.randperm(96).split(16):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(train[0][batch]), train[1][batch])
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        val_loss = nn.functional.cross_entropy(model(valid[0]), valid[1])
print(f"lr {rate}: validation loss {val_loss.item():.4f}")
