"""Hourly demand of several sites: GRU on sliding windows, direct forecast 1, 6 and 24 hours ahead."""
import math

import numpy as np
import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(21)
rs = np.random.RandomState(21)

SITES, HOURS, WINDOW = 4, 24 * 7 * 9, 48
HORIZONS = (1, 6, 24)


def simulate():
    """Daily and weekly rhythm whose strength wanders, plus a slowly varying level and short weather effects."""
    t = np.arange(HOURS)
    out = []
    for _ in range(SITES):
        phase = rs.uniform(0, 2 * math.pi)
        amp = 1 + 0.25 * np.sin(2 * np.pi * t / (24 * 11) + rs.uniform(0, 6))
        daily = amp * (np.sin(2 * np.pi * t / 24 + phase) + 0.4 * np.sin(4 * np.pi * t / 24 + 1.3 * phase))
        weekend = -0.6 * ((t // 24) % 7 >= 5)
        ar = np.zeros(HOURS)
        e = rs.normal(0, 0.22, HOURS)
        for i in range(1, HOURS):
            ar[i] = 0.93 * ar[i - 1] + e[i]
        noise = rs.normal(0, 0.08, HOURS)
        out.append(rs.uniform(60, 160) + rs.uniform(12, 25) * (daily + weekend + ar + noise))
    return np.stack(out)


def rolling_mean(s, k):
    """Mean over k hours, same length as s."""
    padded = np.concatenate([np.full(k - 1, s[0]), s])
    return np.convolve(padded, np.ones(k) / k, mode="valid")


demand = simulate()
n_train, n_val = int(HOURS * 0.7), int(HOURS * 0.15)
mean = demand[:, :n_train].mean(1)
std = demand[:, :n_train].std(1)
scaled = (demand - mean[:, None]) / std[:, None]

hours = np.arange(HOURS)
weekend = ((hours // 24) % 7 >= 5).astype(float)


def windows(start, stop):
    xs, ys, sites = [], [], []
    for s in range(SITES):
        smooth = rolling_mean(scaled[s], 9)
        feats = np.concatenate([scaled[s][None], smooth[None], weekend[None]]).T
        for end in range(max(start, WINDOW), stop - max(HORIZONS)):
            xs.append(feats[end - WINDOW:end])
            ys.append([scaled[s, end + h - 1] for h in HORIZONS])
            sites.append(s)
    return (torch.tensor(np.array(xs), dtype=torch.float32), torch.tensor(np.array(ys), dtype=torch.float32),
            torch.tensor(sites))


train = windows(0, n_train)
val = windows(n_train, n_train + n_val)
test = windows(n_train + n_val, HOURS)
print("windows", len(train[0]), len(val[0]), len(test[0]))


class Forecaster(nn.Module):
    def __init__(self, n_in, hidden=40):
        super().__init__()
        self.rnn = nn.GRU(n_in, hidden, batch_first=True)
        self.site = nn.Embedding(SITES, 4)
        self.heads = nn.ModuleList([nn.Sequential(nn.Linear(hidden + 4, 32), nn.ReLU(), nn.Linear(32, 1))
                                    for _ in HORIZONS])

    def forward(self, x, site):
        h, _ = self.rnn(x)
        z = torch.cat([h[:, -1], self.site(site)], dim=1)
        return [head(z).squeeze(1) for head in self.heads]


def mae_by_horizon(model, part):
    """Mean absolute error in MWh for each horizon."""
    model.eval()
    x, y, s = part
    err = []
    with torch.no_grad():
        for i in torch.arange(len(x)).split(512):
            pred = torch.stack(model(x[i], s[i]), dim=1)
            err.append((pred - y[i]).abs() * torch.tensor(std, dtype=torch.float32)[s[i]][:, None])
    return torch.cat(err).mean(0)


def naive(part):
    x, y, s = part
    scale = torch.tensor(std, dtype=torch.float32)[s]
    last = [(x[:, -1, 0] - y[:, 0]).abs(), (x[:, -24 + 5, 0] - y[:, 1]).abs(), (x[:, -1, 0] - y[:, 2]).abs()]
    return torch.stack([(e * scale).mean() for e in last])


batch = 64
lr = 2e-3
model = Forecaster(train[0].shape[2])
opt = torch.optim.Adam(model.parameters(), lr=lr)
steps_per_epoch = math.ceil(len(train[0]) / batch)
EPOCHS = 8
sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=lr, total_steps=EPOCHS * steps_per_epoch, pct_start=0.2)


def fmt(v):
    return "  ".join(f"{h:>2}h {e:.2f}" for h, e in zip(HORIZONS, v.tolist()))


for epoch in range(EPOCHS):
    model.train()
    perm = torch.randperm(len(train[0]))
    total = 0.0
    for idx in perm.split(batch):
        x, y, s = (part[idx] for part in train)
        loss = 0.0
        for k, pred in enumerate(model(x, s)):
            loss = loss + (pred - y[:, k]).pow(2).mean() / len(HORIZONS)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        sched.step()
        total += loss.item() * len(idx)
    print(f"epoch {epoch + 1}: train mse {total / len(perm):.4f} | val MAE (MWh) {fmt(mae_by_horizon(model, val))}")

print("test MAE (MWh)  model:", fmt(mae_by_horizon(model, test)))
print("test MAE (MWh)  naive:", fmt(naive(test)))
