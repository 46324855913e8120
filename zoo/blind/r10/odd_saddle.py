"""Quantile regression for delivery times: asymmetric loss, most points lie under the upper quantile on purpose."""
import numpy as np
import torch
import torch.nn as nn

torch.set_num_threads(1)
torch.manual_seed(8)
levels = torch.tensor([0.05, 0.25, 0.5, 0.75, 0.95])


def deliveries(n, seed):
    r = np.random.default_rng(seed)
    dist, load, hour, rain = r.gamma(2, 3, n), r.uniform(0, 1, n), r.uniform(8, 20, n), (r.random(n) < 0.25)
    rush = np.exp(-0.5 * ((hour - 17) / 1.3) ** 2)
    base = 12 + 2.2 * dist * (1 + 0.5 * rush) + 8 * load
    spread = 2 + 0.5 * dist * (1 + rain) + 4 * rush
    y = base + spread * r.gamma(1.5, 1.0, n)
    x = np.column_stack([dist, load, hour, rain])
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)


class Quantiles(nn.Module):
    """First quantile plus positive increments, so that quantiles cannot cross."""

    def __init__(self, mean, std):
        super().__init__()
        self.register_buffer("mean", mean)
        self.register_buffer("std", std)
        self.net = nn.Sequential(nn.Linear(4, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, len(levels)))

    def forward(self, x):
        out = self.net((x - self.mean) / self.std)
        return 25 + 10 * torch.cat([out[:, :1], nn.functional.softplus(out[:, 1:])], 1).cumsum(1)


def pinball(q, y):
    diff = y[:, None] - q
    return torch.maximum(levels * diff, (levels - 1) * diff)


x, y = deliveries(8000, 1)
xt, yt = deliveries(3000, 2)
model = Quantiles(x.mean(0), x.std(0))
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
epochs = 25
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, epochs)
constant = torch.quantile(y, levels).expand(len(yt), -1)
for e in range(1, epochs + 1):
    total = 0.0
    for idx in torch.randperm(len(x)).split(100):
        loss = pinball(model(x[idx]), y[idx]).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item() * len(idx)
    sched.step()
    if e % 3 == 1:
        with torch.no_grad():
            q = model(xt)
        cover = (yt[:, None] <= q).float().mean(0)
        print(f"epoch {e:3d}  train {total / len(x):.4f}  test {pinball(q, yt).mean().item():.4f}  "
              "share below: " + " ".join(f"{c:.3f}" for c in cover))
inside = ((yt >= q[:, 0]) & (yt <= q[:, -1])).float().mean().item()
print(f"test pinball {pinball(q, yt).mean().item():.4f}  (constant quantiles {pinball(constant, yt).mean().item():.4f})  "
      f"90% interval covers {inside:.3f}")
