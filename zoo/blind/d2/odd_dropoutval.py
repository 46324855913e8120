import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


def bookings(n=2600, seed=31):
    r = np.random.RandomState(seed)
    nums = r.randn(n, 8)
    hotel, meal = r.randint(0, 2, n), r.randint(0, 5, n)
    z = 1.5 * nums[:, 0] - 1.2 * nums[:, 1] + nums[:, 2] * np.where(hotel, 1.5, -0.5) + np.array([0.9, -0.9, 0.4, -1.4, 0])[meal]
    y = (r.rand(n) < 1 / (1 + np.exp(-1.6 * z + 0.8))).astype("float32")
    x = np.column_stack([nums, np.eye(2)[hotel], np.eye(5)[meal]]).astype("float32")
    return TensorDataset(torch.from_numpy(x), torch.from_numpy(y))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.seq = nn.Sequential(nn.Dropout(0.2), nn.Linear(15, 96), nn.ReLU(), nn.Dropout(0.6), nn.Linear(96, 48), nn.ReLU(), nn.Dropout(0.5), nn.Linear(48, 1))

    def forward(self, x):
        return self.seq(x)[:, 0]


torch.manual_seed(31)
train, val = random_split(bookings(), [2000, 600])
tl, vl = DataLoader(train, 50, shuffle=True), DataLoader(val, 600)
net, bce = Net(), nn.BCEWithLogitsLoss()
opt = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=0.01)
for e in range(8):
    net.train()
    s = c = 0.0
    for x, y in tl:
        o = net(x)
        l = bce(o, y)
        opt.zero_grad(); l.backward(); opt.step()
        s += l.item() * len(y); c += ((o > 0) == (y > 0)).sum().item()
    net.eval()
    with torch.no_grad():
        x, y = next(iter(vl))
        o = net(x)
    print(f"epoch {e}: loss={s / 2000:.4f} acc={c / 2000:.3f} val_loss={bce(o, y).item():.4f} val_acc={((o > 0) == (y > 0)).float().mean().item():.3f}")
