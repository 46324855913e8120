"""Stochastic weight averaging with a high constant rate: the running weights are worse than their average."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.swa_utils import AveragedModel, SWALR, update_bn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
torch.manual_seed(12)
g = torch.Generator().manual_seed(12)
w1, w2 = torch.randn(24, 10, generator=g) / 24 ** 0.5, torch.randn(10, generator=g)


def sample(n):
    x = torch.randn(n, 24, generator=g)
    y = torch.sin(2 * x @ w1) @ w2 + 0.4 * torch.randn(n, generator=g)
    return x, y


x, y = sample(4000)
xt, yt = sample(2000)
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True, generator=torch.Generator().manual_seed(1))
net = nn.Sequential(nn.Linear(24, 96), nn.BatchNorm1d(96), nn.ReLU(), nn.Linear(96, 96), nn.BatchNorm1d(96), nn.ReLU(),
                    nn.Linear(96, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-3)
epochs, swa_start = 30, 15
swa = AveragedModel(net)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, swa_start, eta_min=0.02)
swa_sched = SWALR(opt, swa_lr=0.05, anneal_epochs=2)


@torch.no_grad()
def mse(model):
    model.eval()
    return F.mse_loss(model(xt).squeeze(1), yt).item()


for e in range(1, epochs + 1):
    net.train()
    total = 0.0
    for xb, yb in loader:
        loss = F.mse_loss(net(xb).squeeze(1), yb)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item() * len(yb)
    if e > swa_start:
        swa.update_parameters(net)
        swa_sched.step()
    else:
        sched.step()
    if e % 3 == 0:
        print(f"epoch {e:2d}  lr {opt.param_groups[0]['lr']:.4f}  train {total / len(x):.4f}  test mse {mse(net):.4f}")


@torch.no_grad()
def spread(a, b):
    """Relative distance between two sets of weights."""
    num = sum((p - q).pow(2).sum() for p, q in zip(a.parameters(), b.parameters()))
    return (num / sum(q.pow(2).sum() for q in b.parameters())).sqrt().item()


print(f"{int(swa.n_averaged)} sets of weights averaged, distance of the last from the average {spread(net, swa.module):.3f}")
raw = mse(swa)
update_bn(loader, swa)
print(f"test mse: last weights {mse(net):.4f}  average {mse(swa):.4f} (before renewing batch norm {raw:.4f})  "
      f"variance {yt.var().item():.3f}  noise floor 0.16")
