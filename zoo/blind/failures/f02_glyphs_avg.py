import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
rng = np.random.default_rng(0)
glyphs = (rng.random((10, 8, 8)) > 0.6).astype(np.float32)
y = rng.integers(0, 10, 1700)
X = glyphs[y] * rng.uniform(0.5, 1.0, (1700, 1, 1)) + 0.45 * rng.standard_normal((1700, 8, 8))
X = torch.tensor(X, dtype=torch.float32).unsqueeze(1)
y = torch.tensor(y)
Xtr, ytr, Xva, yva = X[:1400], y[:1400], X[1400:], y[1400:]

net = nn.Sequential(
    nn.Conv2d(1, 12, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(12, 24, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
    nn.Flatten(), nn.Linear(96, 10),
)


class WeightAverage:
    """Exponential moving average of the weights, started from zero, with bias correction."""

    def __init__(self, model, decay=0.995):
        self.decay = decay
        self.t = 0
        self.avg = {k: torch.zeros_like(p) for k, p in model.named_parameters()}

    @torch.no_grad()
    def update(self, model):
        for k, p in model.named_parameters():
            self.avg[k].mul_(self.decay).add_(p, alpha=1 - self.decay)

    @torch.no_grad()
    def load_into(self, model):
        self.t += 1
        correction = 1 - self.decay ** self.t
        for k, p in model.named_parameters():
            p.copy_(self.avg[k] / correction)


ema = WeightAverage(net)
opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
lossf = nn.CrossEntropyLoss()
BS = 28

for epoch in range(6):
    perm = torch.randperm(len(Xtr))
    tot = 0.0
    for b, i in enumerate(range(0, len(perm), BS)):
        idx = perm[i:i + BS]
        loss = lossf(net(Xtr[idx]), ytr[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        ema.update(net)
        tot += loss.item()
        if b % 10 == 0:
            print(f"  [{epoch}:{b:02d}] loss {loss.item():.4f}")
    with torch.no_grad():
        acc = (net(Xva).argmax(1) == yva).float().mean().item()
    print(f"epoch {epoch} mean loss {tot / 50:.4f} val acc {acc:.3f}")
    if epoch == 2:
        ema.load_into(net)  # second half restarts from the averaged weights
