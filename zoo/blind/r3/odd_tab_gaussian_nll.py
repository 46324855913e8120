import numpy as np
import torch
from torch import nn

rng = np.random.RandomState(12)
torch.manual_seed(12)
n = 2000
temp = rng.uniform(-5, 35, n)
humidity = rng.uniform(20, 95, n)
machine = rng.randint(0, 5, n)
shift = rng.choice(["day", "night"], n)
offset = np.array([0.0, 0.02, -0.03, 0.05, 0.01])[machine]
sigma = np.where(shift == "night", 0.004, 0.012)
drift = 0.1 + 0.001 * temp + offset + 0.02 * np.sin(humidity / 12) + sigma * rng.randn(n)      # mm

X = np.column_stack([(temp - 15) / 11.5, (humidity - 57) / 22, np.eye(5)[machine], shift == "night"]).astype(np.float32)
X, y = torch.from_numpy(X), torch.tensor(drift, dtype=torch.float32)
Xt, yt, Xv, yv = X[:1600], y[:1600], X[1600:], y[1600:]

net = nn.Sequential(nn.Linear(8, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh(), nn.Linear(48, 2))
crit = nn.GaussianNLLLoss(eps=1e-8)
opt = torch.optim.Adam(net.parameters(), lr=4e-3)
sched = torch.optim.lr_scheduler.ExponentialLR(opt, 0.9)

for epoch in range(25):
    total = 0.0
    for b in torch.randperm(len(yt)).split(80):
        mean, raw = net(Xt[b]).unbind(1)
        loss = crit(mean, yt[b], torch.exp(2 * raw))
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 5.0)
        opt.step()
        total += loss.item() * len(b)
    sched.step()
    if epoch % 4 == 0:
        with torch.no_grad():
            mean, raw = net(Xv).unbind(1)
            nll = crit(mean, yv, torch.exp(2 * raw)).item()
            cover = ((yv - mean).abs() < 2 * raw.exp()).float().mean().item()
            r2 = 1 - (yv - mean).square().mean() / yv.var()
        print(f"epoch {epoch:2d} nll {total / len(yt):+.3f} val nll {nll:+.3f} R2 {r2:.3f} inside two sigma {cover:.2f}")
