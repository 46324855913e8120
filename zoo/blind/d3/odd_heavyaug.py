"""Blob patterns with strong augmentation: noise, cut-out of a quarter, channel drop."""
import torch
import torch.nn as nn
from torch.utils.data import Dataset, DataLoader

torch.manual_seed(8)
P = torch.nn.functional.interpolate(torch.randn(5, 3, 4, 4), size=12, mode="bilinear")


class Blobs(Dataset):
    def __init__(self, n, seed, train):
        gen = torch.Generator().manual_seed(seed)
        self.y = torch.randint(0, 5, (n,), generator=gen)
        self.x = 0.3 * P[self.y] + 0.9 * torch.randn(n, 3, 12, 12, generator=gen)
        self.train = train

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        x = self.x[i]
        if self.train:
            x = x + 0.6 * torch.randn_like(x)
            r, c = torch.randint(0, 7, (2,)).tolist()
            x[:, r:r + 6, c:c + 6] = 0
            x = x * (torch.rand(3, 1, 1) > 0.3)
        return x, self.y[i]


tr, va = DataLoader(Blobs(1500, 1, True), batch_size=50, shuffle=True), DataLoader(Blobs(400, 2, False), batch_size=200)
net = nn.Sequential(nn.Conv2d(3, 12, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(12, 24, 3, stride=2, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(24 * 9, 5))
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
for e in range(7):
    net.train()
    L = A = 0
    for x, y in tr:
        o = net(x)
        l = nn.functional.cross_entropy(o, y)
        opt.zero_grad(); l.backward(); opt.step()
        L += l.item() * len(y); A += (o.argmax(1) == y).sum().item()
    net.eval()
    with torch.no_grad():
        vl = va_ = 0
        for x, y in va:
            o = net(x)
            vl += nn.functional.cross_entropy(o, y, reduction="sum").item()
            va_ += (o.argmax(1) == y).sum().item()
    print(f"epoch {e} train(aug) loss {L / 1500:.3f} acc {A / 1500:.3f}  val(clean) loss {vl / 400:.3f} acc {va_ / 400:.3f}")
