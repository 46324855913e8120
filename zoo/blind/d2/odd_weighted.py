import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

torch.manual_seed(12)
rng = np.random.default_rng(12)
SHARES = [0.80, 0.12, 0.05, 0.03]


def make(n):
    """Texture patches 10x10 of four kinds, as rare as in the factory."""
    y = rng.choice(4, n, p=SHARES)
    u, v = np.meshgrid(np.arange(10), np.arange(10))
    waves = [np.sin(u * 1.1), np.sin(v * 1.1), np.sin((u + v) * 0.8), np.sin((u - v) * 0.8)]
    x = np.stack([waves[k] + rng.normal(0, 2.4, (10, 10)) for k in y])[:, None]
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y)


def main():
    xt, yt = make(1500)
    xv, yv = make(600)
    per_class = 1.0 / torch.bincount(yt, minlength=4).double()
    sampler = WeightedRandomSampler(per_class[yt], num_samples=len(yt), replacement=True)
    loader = DataLoader(TensorDataset(xt, yt), batch_size=50, sampler=sampler)
    net = nn.Sequential(nn.Conv2d(1, 12, 4), nn.ReLU(), nn.AdaptiveAvgPool2d(3), nn.Flatten(), nn.Linear(108, 4))
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(8):
        net.train()
        tot = 0.0
        for x, y in loader:
            opt.zero_grad()
            loss = nn.functional.cross_entropy(net(x), y)
            loss.backward()
            opt.step()
            tot += loss.item()
        net.eval()
        with torch.no_grad():
            out = net(xv)
        recall = [(out.argmax(1)[yv == k] == k).float().mean().item() for k in range(4)]
        print(f"epoch {epoch} train {tot / len(loader):.3f} val {nn.functional.cross_entropy(out, yv).item():.3f} "
              f"balanced acc {np.mean(recall):.3f} recalls " + " ".join(f"{r:.2f}" for r in recall))


main()
