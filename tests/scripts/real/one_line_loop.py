"""A notebook's training loop, several statements to the line."""
# fmt: off

import os

import torch
from torch import nn

fault = os.environ.get("FAULT", "")
torch.manual_seed(0)
x = torch.randn(800, 6); w = torch.randn(6, 1)
y = ((x @ w).squeeze(1) + 0.5 * torch.randn(800) > 0).float()
xv, yv, x, y = x[600:], y[600:], x[:600], y[:600]
net = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))
if fault == "double-sigmoid": net.append(nn.Sigmoid())
opt = torch.optim.Adam(net.parameters(), lr=3e-3); crit = nn.BCEWithLogitsLoss()

for epoch in range(15):
    net.train(); perm = torch.randperm(600)
    for k in range(0, 600, 30):
        idx = perm[k:k + 30]; loss = crit(net(x[idx]).squeeze(1), y[idx])
        opt.zero_grad(); loss.backward(); opt.step()
        print("train", loss.item())
    net.eval()
    with torch.no_grad(): vloss = crit(net(xv).squeeze(1), yv)
    print("valid", vloss.item())
