# Day-ahead mean load from the last two days of hourly load.
import copy

import numpy as np
import torch
import torch.nn as nn

torch.manual_seed(5)
W, H = 48, 24


def hourly_load(n=6000, seed=8):
    g = np.random.default_rng(seed)
    t = np.arange(n)
    slow = np.zeros(n)
    for i in range(1, n):
        slow[i] = 0.985 * slow[i - 1] + g.normal(0, 2.2)
    day = 18 * np.sin(2 * np.pi * t / 24) + 6 * np.sin(4 * np.pi * t / 24 + 1)
    week = np.where((t // 24) % 7 >= 5, -14.0, 0.0)
    return 220 + 0.006 * t + slow + day * (1 + 0.2 * np.sin(2 * np.pi * t / 900)) + week + g.normal(0, 3, n), (t // 24) % 7


def windows(scaled, load, dow, lo, hi):
    xs, ks, ys = [], [], []
    for i in range(lo, hi - W - H + 1):
        xs.append(scaled[i:i + W])
        ks.append([(i + W) % 24, dow[i + W]])
        ys.append(load[i + W:i + W + H].mean())
    return (torch.tensor(np.array(xs), dtype=torch.float32), torch.tensor(np.array(ks)),
            torch.tensor(np.array(ys), dtype=torch.float32))


load, dow = hourly_load()
n = len(load)
cut_a, cut_b = int(n * 0.7), int(n * 0.85)
mu, sd = load[:cut_a].mean(), load[:cut_a].std()


def scale(part):
    return (part - mu) / sd


full = np.concatenate([scale(load[:cut_a]), scale(load[cut_a:cut_b]), scale(load[cut_b:])])
train = windows(full, load, dow, 0, cut_a)
val = windows(full, load, dow, cut_a, cut_b)
test = windows(full, load, dow, cut_b, n)


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.hour, self.dow = nn.Embedding(24, 4), nn.Embedding(7, 3)
        self.net = nn.Sequential(nn.Linear(W + 7, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 1))

    def forward(self, x, k):
        return self.net(torch.cat([x, self.hour(k[:, 0]), self.dow(k[:, 1])], 1)).squeeze(1)


def mae(model, part):
    x, k, y = part
    model.eval()
    with torch.no_grad():
        return (model(x, k) * sd + mu - y).abs().mean().item()


model = Forecaster()
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 16)
best, keep = float("inf"), None
for epoch in range(16):
    model.train()
    x, k, y = train
    order = torch.randperm(len(y))
    for i in range(0, len(y), 64):
        j = order[i:i + 64]
        loss = nn.functional.smooth_l1_loss(model(x[j], k[j]), (y[j] - mu) / sd)
        opt.zero_grad()
        loss.backward()
        opt.step()
    sched.step()
    v = mae(model, val)
    if v < best:
        best, keep = v, copy.deepcopy(model.state_dict())
    print(f"epoch {epoch:2d} train MAE {mae(model, train):.2f} MW  val MAE {v:.2f} MW")
model.load_state_dict(keep)
print(f"best val MAE {best:.2f} MW | test MAE {mae(model, test):.2f} MW")
