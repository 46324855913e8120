"""Fine-tuning with model.eval() during training on purpose: tiny batches, so the batch-norm statistics of the pre-training are kept."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(19)
W = torch.randn(16, 6)


def task(n, cols):
    x = torch.randn(n, 16) * 2 + 1
    return x, torch.tanh((x - 1) @ W[:, cols] / 2).argmax(1)


net = nn.Sequential(nn.Linear(16, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 6))
x, y = task(5000, [0, 1, 2, 3, 4, 5])
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
net.train()
for epoch in range(6):
    for idx in torch.randperm(len(x)).split(128):
        loss = F.cross_entropy(net(x[idx]), y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
print(f"pre-training done, loss {loss.item():.3f}")

x_tr, y_tr = task(300, [3, 4, 5])
x_va, y_va = task(2000, [3, 4, 5])
net[6] = nn.Linear(64, 3)
net.eval()                                             # stays so: batches of two would spoil the statistics
mean_before = net[1].running_mean.clone()
opt = torch.optim.SGD([{"params": net[:6].parameters(), "lr": 2e-4}, {"params": net[6].parameters(), "lr": 5e-3}], momentum=0.9)
for epoch in range(10):
    run = 0.0
    for idx in torch.randperm(len(x_tr)).split(2):
        loss = F.cross_entropy(net(x_tr[idx]), y_tr[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        run += loss.item() * len(idx)
    with torch.no_grad():
        acc = (net(x_va).argmax(1) == y_va).float().mean()
    print(f"epoch {epoch} training flag {net.training} train {run / len(x_tr):.4f} val acc {acc:.3f} statistics moved {(net[1].running_mean - mean_before).abs().max():.4f}")
