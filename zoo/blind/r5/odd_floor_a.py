"""Response time of the next event: a weak signal under strong noise.  Best possible mse is the noise variance 4.0."""
import numpy as np
import torch
import torch.nn as nn

rng = np.random.default_rng(77)
torch.manual_seed(77)
N, T = 9000, 3
SIGMA = 2.0


def mean_fn(x):
    return 0.8 * np.tanh(x.sum((1, 2)) * 0.5) + 1.2 * np.sin(1.5 * x[:, -1, 0])


def sample(n):
    x = rng.normal(size=(n, T, 2)).astype(np.float32)
    f = mean_fn(x).astype(np.float32)
    return torch.from_numpy(x), torch.from_numpy(f), torch.from_numpy((f + SIGMA * rng.normal(size=n)).astype(np.float32))


x, f, y = sample(N)
xv, fv, yv = sample(2000)
net = nn.Sequential(nn.Flatten(), nn.Linear(2 * T, 64), nn.ReLU(), nn.Linear(64, 1), nn.Flatten(0))
opt = torch.optim.AdamW(net.parameters(), lr=5e-3, weight_decay=0.02)
sched = torch.optim.lr_scheduler.LinearLR(opt, 1.0, 0.01, total_iters=14)
for epoch in range(14):
    tot = 0.0
    for idx in torch.randperm(N).split(150):
        loss = ((net(x[idx]) - y[idx]) ** 2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        tot += loss.item() * len(idx)
    sched.step()
    with torch.no_grad():
        p = net(xv)
        mse = ((p - yv) ** 2).mean().item()
        corr = torch.corrcoef(torch.stack([p, fv]))[0, 1].item()
    print(f"epoch {epoch + 1:2d} train mse {tot / N:.4f} val mse {mse:.4f} (floor {SIGMA ** 2:.2f}, variance {yv.var().item():.2f}) corr with true mean {corr:.4f}")
