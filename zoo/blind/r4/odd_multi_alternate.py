"""Tasks take turns: even steps train the colour head, odd steps the count head; the other head has no gradient then."""
import itertools
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(9)


def dots(n):
    count = torch.randint(1, 6, (n,))
    hue = torch.randint(0, 3, (n,))
    img = 0.1 * torch.randn(n, 3, 16, 16)
    for i in range(n):
        cells = torch.randperm(16)[:count[i]]
        for c in cells.tolist():
            r, q = divmod(c, 4)
            img[i, hue[i], 4 * r + 1:4 * r + 3, 4 * q + 1:4 * q + 3] += 0.8
    return img, hue, count - 1


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Conv2d(3, 16, 4, stride=4), nn.ReLU(), nn.Conv2d(16, 16, 1), nn.ReLU())
        self.heads = nn.ModuleDict({"hue": nn.Linear(16, 3), "count": nn.Linear(16, 5)})

    def forward(self, x, task):
        return self.heads[task](self.trunk(x).sum((2, 3)) / 4)


img, hue, count = dots(600)
vimg, vhue, vcount = dots(200)
loaders = {
    "hue": itertools.cycle(DataLoader(TensorDataset(img[:200], hue[:200]), batch_size=20, shuffle=True)),     # few hue labels
    "count": itertools.cycle(DataLoader(TensorDataset(img, count), batch_size=40, shuffle=True)),
}
net = Shared()
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
last = {}
for step in range(1, 401):
    task = "hue" if step % 2 == 0 else "count"
    x, y = next(loaders[task])
    loss = F.cross_entropy(net(x, task), y)
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    last[task] = loss.item()
    if step % 80 == 0:
        with torch.no_grad():
            a = (net(vimg, "hue").argmax(1) == vhue).float().mean()
            b = (net(vimg, "count").argmax(1) == vcount).float().mean()
        print(f"step {step} " + " ".join(f"{t} loss {v:.3f}" for t, v in sorted(last.items())) + f" | val hue {a:.3f} count {b:.3f}")
