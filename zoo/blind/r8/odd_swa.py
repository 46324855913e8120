"""Stochastic weight averaging: high constant rate at the end, the running model looks noisy and worse than the average; batch-norm is recomputed."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.swa_utils import SWALR, AveragedModel, update_bn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
torch.manual_seed(24)
P = torch.randn(6, 4, 20)


def data(n):
    y, k = torch.randint(0, 6, (n,)), torch.randint(0, 4, (n,))
    return P[y, k] + 1.0 * torch.randn(n, 20), y


x_tr, y_tr = data(2000)
x_va, y_va = data(2000)
loader = DataLoader(TensorDataset(x_tr, y_tr), batch_size=32, shuffle=True, drop_last=True)
net = nn.Sequential(nn.Linear(20, 96), nn.BatchNorm1d(96), nn.ReLU(), nn.Linear(96, 96), nn.BatchNorm1d(96), nn.ReLU(), nn.Linear(96, 6))
average = AveragedModel(net)
opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-3)
late = SWALR(opt, swa_lr=0.25, anneal_epochs=1)


@torch.no_grad()
def accuracy(m):
    m.eval()
    return (m(x_va).argmax(1) == y_va).float().mean().item()


for epoch in range(18):
    net.train()
    run = 0.0
    for x, y in loader:
        loss = F.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        run += loss.item() / len(loader)
    if epoch >= 6:
        average.update_parameters(net)
        late.step()
    print(f"epoch {epoch:2d} lr {opt.param_groups[0]['lr']:.3f} train {run:.3f} val acc of the running model {accuracy(net):.3f}")
update_bn(loader, average)
print(f"averaged model: val acc {accuracy(average):.3f}")
