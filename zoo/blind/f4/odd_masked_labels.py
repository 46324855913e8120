import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)
N, TASKS = 3000, 8
X = torch.randn(N, 20)
W = torch.randn(20, TASKS) / 4
Y = X @ W + 0.1 * torch.randn(N, TASKS)
Y[torch.rand(N, TASKS) < 0.6] = float("nan")          # most assays were never run
Y[::97] = float("nan")                               # some compounds have none at all

net = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, TASKS))
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
for epoch in range(5):
    for xb, yb in DataLoader(TensorDataset(X, Y), batch_size=50, shuffle=True):
        known = ~torch.isnan(yb)
        err = (net(xb) - torch.nan_to_num(yb)) ** 2
        loss = (err * known).sum() / known.sum().clamp(min=1)
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, loss.item())
