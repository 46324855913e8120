"""Prequential learning on a drifting click stream: one pass, test-then-train, no epochs, no validation set, no shuffling.
The loss rises each time the concept changes. Goal: average prequential accuracy above 0.85."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, IterableDataset

torch.set_num_threads(1)


class Clicks(IterableDataset):
    def __init__(self, n=60000, drift_every=15000):
        self.n, self.drift_every = n, drift_every

    def __iter__(self):
        g = torch.Generator().manual_seed(23)
        for t in range(self.n):
            if t % self.drift_every == 0:
                w = torch.randn(10, generator=g)
                w = w / w.norm() * 6
            x = torch.randn(10, generator=g)
            p = torch.sigmoid(x @ w)
            yield x, (torch.rand(1, generator=g) < p).float()


torch.manual_seed(23)
net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.5)
bce = nn.BCEWithLogitsLoss()
hits = seen = 0
win_hits, win_loss, win = 0, 0.0, 0
for i, (x, y) in enumerate(DataLoader(Clicks(), batch_size=32), 1):
    out = net(x)
    loss = bce(out, y)
    h = ((out > 0).float() == y).sum().item()
    hits, seen = hits + h, seen + len(x)
    win_hits, win_loss, win = win_hits + h, win_loss + loss.item() * len(x), win + len(x)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if i % 94 == 0:
        print(f"seen {seen} window loss {win_loss / win:.4f} window acc {win_hits / win:.3f}")
        win_hits, win_loss, win = 0, 0.0, 0
print(f"prequential accuracy {hits / seen:.4f}")
