"""Adding digits: short sums first, long sums later, in that order on purpose."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Sampler

torch.manual_seed(6)
g = np.random.default_rng(6)
MAXLEN = 8


def make(n):
    lens = g.integers(2, MAXLEN + 1, n)
    x = np.zeros((n, MAXLEN), np.int64)
    for i, k in enumerate(lens):
        x[i, :k] = g.integers(1, 6, k)
    return torch.from_numpy(x), torch.from_numpy(x.sum(1) + 0.4 * g.normal(size=n)).float(), torch.from_numpy(lens)


class Sums(Dataset):
    def __init__(self, n):
        self.x, self.y, self.lens = make(n)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


class EasyFirst(Sampler):
    """Epoch by epoch, admits longer items; from epoch 4 on all of them, shuffled."""

    def __init__(self, lens):
        self.lens, self.epoch = lens, 0

    def allowed(self):
        if self.epoch >= 4:
            return torch.randperm(len(self.lens))
        idx = torch.nonzero(self.lens <= 3 + 2 * self.epoch).squeeze(1)
        return idx[torch.argsort(self.lens[idx], stable=True)]

    def __iter__(self):
        order = self.allowed()
        self.epoch += 1
        return iter(order.tolist())

    def __len__(self):
        return len(self.lens)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(6, 16)
        self.f = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, x):
        return (self.f(self.e(x)).squeeze(-1) * (x > 0)).sum(1)


train, val = Sums(3000), Sums(500)
loader = DataLoader(train, batch_size=32, sampler=EasyFirst(train.lens))
net = Net()
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
for epoch in range(8):
    sq, n = 0.0, 0
    for x, y in loader:
        loss = nn.functional.mse_loss(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        sq += loss.item() * len(y)
        n += len(y)
    with torch.no_grad():
        v = nn.functional.mse_loss(net(val.x), val.y).item()
    print(f"stage {epoch} items {n} train mse {sq / n:.4f} val mse {v:.4f}")
