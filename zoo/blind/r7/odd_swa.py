"""Stochastic weight averaging with a high constant rate: the live loss stays noisy, the average is good."""
import torch
import torch.nn as nn
from torch.optim.swa_utils import AveragedModel, SWALR, update_bn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(15)
torch.set_num_threads(1)


def make(n):
    x = torch.randn(n, 8)
    y = torch.sin(2 * x[:, :1]) * x[:, 1:2] + 0.5 * x[:, 2:3].abs() + 0.3 * torch.randn(n, 1)
    return x, y


x_train, y_train = make(2500)
x_val, y_val = make(800)
x_test, y_test = make(1500)
loader = DataLoader(TensorDataset(x_train, y_train), batch_size=50, shuffle=True)

net = nn.Sequential(nn.Linear(8, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU(),
                    nn.Linear(64, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
average = AveragedModel(net)
swa_sched = SWALR(opt, swa_lr=0.08, anneal_epochs=2)
EPOCHS, SWA_FROM = 18, 8


@torch.no_grad()
def mse(model, x, y):
    model.eval()
    value = (model(x) - y).pow(2).mean().item()
    model.train()
    return value


for epoch in range(EPOCHS):
    net.train()
    total = 0.0
    for xb, yb in loader:
        loss = (net(xb) - yb).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item() * len(xb)
    if epoch >= SWA_FROM:
        average.update_parameters(net)
        swa_sched.step()
    if epoch % 2 == 1:
        print(f"epoch {epoch:2d} lr {opt.param_groups[0]['lr']:.3f} train {total / len(x_train):.4f} "
              f"val of live net {mse(net, x_val, y_val):.4f}")

# the averaged net needs its own batch-norm statistics
update_bn(loader, average)
print(f"averaged over {int(average.n_averaged)} epochs")
print(f"test mse live {mse(net, x_test, y_test):.4f} averaged {mse(average, x_test, y_test):.4f} noise 0.0900")
