"""Rare-disease screening: 300 patients for training, 14 for validation (all there are), model averaged over late epochs."""
import copy

import numpy as np
import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(8)
rng = np.random.default_rng(8)


def cohort(n):
    y = rng.integers(0, 2, n)
    x = rng.normal(size=(n, 30))
    x[:, :6] += 0.42 * (2 * y[:, None] - 1)
    x[:, 6] *= 1 + y
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)


x_tr, y_tr = cohort(300)
x_va, y_va = cohort(14)
x_later, y_later = cohort(3000)      # collected after the study closed

net = nn.Sequential(nn.Linear(30, 48), nn.SiLU(), nn.Dropout(0.4), nn.Linear(48, 1))
avg = torch.optim.swa_utils.AveragedModel(net)
opt = torch.optim.SGD(net.parameters(), lr=0.03, momentum=0.9, weight_decay=2e-2)
bce = nn.BCEWithLogitsLoss()
for epoch in range(1, 61):
    net.train()
    losses = []
    for idx in torch.randperm(300).split(16):
        loss = bce(net(x_tr[idx]).squeeze(1), y_tr[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    if epoch > 30:
        avg.update_parameters(net)
    if epoch % 3 == 0:
        net.eval()
        with torch.no_grad():
            z = net(x_va).squeeze(1)
        print(f"epoch {epoch:3d}  train {np.mean(losses):.3f}  val loss {bce(z, y_va):.3f}  "
              f"val correct {int(((z > 0) == (y_va > 0.5)).sum())}/14")
avg.eval()
with torch.no_grad():
    z = avg(x_later).squeeze(1)
print(f"later patients: loss {bce(z, y_later):.3f} accuracy {((z > 0) == (y_later > 0.5)).float().mean():.3f}")
