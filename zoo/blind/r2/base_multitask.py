import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(21)


def build_data(n=2000, d=8):
    x = torch.randn(n, d)
    w = torch.randn(d, 4)
    z = x @ w / d ** 0.5
    price = torch.sin(1.5 * z[:, 0]) + 0.5 * z[:, 1] ** 2 + 0.3 * torch.randn(n)
    demand = 2.5 * torch.sin(1.2 * z[:, 2]) + 2.0 * z[:, 0] + 1.0 * torch.randn(n)
    segment = (z[:, 0] > 0).long() + 2 * (z[:, 3] + 0.4 * z[:, 1] > 0).long()
    flip = torch.rand(n) < 0.1
    segment = torch.where(flip, torch.randint(0, 4, (n,)), segment)
    return TensorDataset(x, price, demand, segment)


class MultiTaskNet(nn.Module):
    def __init__(self, d_in=8, width=64):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(d_in, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.price = nn.Linear(width, 1)
        self.demand = nn.Linear(width, 1)
        self.segment = nn.Linear(width, 4)

    def forward(self, x):
        h = self.trunk(x)
        return self.price(h).squeeze(-1), self.demand(h).squeeze(-1), self.segment(h)


class UncertaintyLoss(nn.Module):
    """Kendall et al. 2018: one learned log-variance per task."""

    def __init__(self, n_tasks):
        super().__init__()
        self.log_var = nn.Parameter(torch.zeros(n_tasks))

    def forward(self, losses):
        losses = torch.stack(losses)
        return (torch.exp(-self.log_var) * losses + self.log_var).sum()


def task_losses(pred, price, demand, segment):
    p, d, s = pred
    return [0.5 * ((p - price) ** 2).mean(), 0.5 * ((d - demand) ** 2).mean(), nn.functional.cross_entropy(s, segment)]


data = build_data()
train_set, val_set = random_split(data, [1600, 400])
loader = DataLoader(train_set, batch_size=50, shuffle=True)
val = next(iter(DataLoader(val_set, batch_size=400)))

net = MultiTaskNet()
criterion = UncertaintyLoss(3)
optimizer = torch.optim.SGD([
    {"params": net.parameters()},
    {"params": criterion.parameters(), "lr": 0.02},
], lr=0.008, momentum=0.9)


def r2(pred, true):
    return 1 - ((pred - true) ** 2).mean() / true.var()


for epoch in range(12):
    net.train()
    total = 0.0
    for x, price, demand, segment in loader:
        optimizer.zero_grad()
        loss = criterion(task_losses(net(x), price, demand, segment))
        loss.backward()
        optimizer.step()
        total += loss.item()
    if epoch % 2 == 1:
        net.eval()
        with torch.no_grad():
            p, d, s = net(val[0])
            acc = (s.argmax(1) == val[3]).float().mean()
            sig = criterion.log_var.exp().sqrt()
        print(f"epoch {epoch + 1:2d} | loss {total / len(loader):7.3f} | val R2 price {r2(p, val[1]):.3f} demand {r2(d, val[2]):.3f} | "
              f"segment acc {acc:.3f} | sigma {sig[0]:.2f} {sig[1]:.2f} {sig[2]:.2f}")
