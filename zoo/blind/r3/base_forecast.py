"""Direct multi-horizon forecast of an hourly sensor (1 h, 6 h, 24 h ahead)."""
import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(3)
np.random.seed(3)

WINDOW = 30
HORIZONS = [1, 6, 24]
EPOCHS = 6


def read_sensor(n=2700):
    t = np.arange(n)
    level = np.cumsum(np.random.randn(n)) * 0.12
    level -= np.convolve(level, np.ones(240) / 240, mode="same")
    load = 50 + 9 * np.sin(2 * np.pi * t / 24) + 4 * np.sin(2 * np.pi * t / 12 + 1.0) + level
    load += 1.0 * np.random.randn(n)
    wind = np.abs(np.convolve(np.random.randn(n), np.ones(12) / 3, mode="same")) * 3
    load -= 0.3 * wind
    load[np.random.rand(n) < 0.03] = -200.0
    return load, wind


def clean(x):
    ok = x > -150
    return np.interp(np.arange(len(x)), np.flatnonzero(ok), x[ok])


def make_windows(feat, target, lo, hi):
    xs, ys = [], []
    for i in range(lo, hi - WINDOW - max(HORIZONS)):
        xs.append(feat[i:i + WINDOW])
        ys.append([target[i + WINDOW - 1 + h] for h in HORIZONS])
    return torch.tensor(np.array(xs), dtype=torch.float32), torch.tensor(np.array(ys), dtype=torch.float32)


class Forecaster(nn.Module):
    def __init__(self, n_in, hidden=24):
        super().__init__()
        self.rnn = nn.GRU(n_in, hidden, batch_first=True)
        self.heads = nn.ModuleList([nn.Sequential(nn.Linear(hidden, 32), nn.ReLU(), nn.Linear(32, 1)) for _ in HORIZONS])

    def forward(self, x):
        out, _ = self.rnn(x)
        z = out[:, -1]
        return [head(z) for head in self.heads]


def evaluate(model, x, y, scale):
    model.eval()
    with torch.no_grad():
        pred = torch.cat(model(x), dim=1)
    return (pred - y).abs().mean(0) * scale


load, wind = read_sensor()
load = clean(load)
cut = int(0.8 * len(load))
mu, sd = load[:cut].mean(), load[:cut].std()
feat = np.stack([(load - mu) / sd, (wind - wind[:cut].mean()) / wind[:cut].std()], axis=1)
x_tr, y_tr = make_windows(feat, feat[:, 0], 0, cut)
x_va, y_va = make_windows(feat, feat[:, 0], cut, len(load))

loader = DataLoader(TensorDataset(x_tr, y_tr), batch_size=64, shuffle=True, drop_last=True)
model = Forecaster(2)
opt = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-4)
sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=6e-3, total_steps=EPOCHS * len(loader))

naive = (x_va[:, -1:, 0] - y_va).abs().mean(0) * sd
print("last-value forecast   mae " + " ".join(f"{v:6.2f}" for v in naive))
for epoch in range(EPOCHS):
    model.train()
    total = 0.0
    for xb, yb in loader:
        outs = model(xb)
        loss = 0.0
        for k, o in enumerate(outs):
            loss = loss + (o.squeeze(1) - yb[:, k]).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        sched.step()
        total += loss.item()
    mae = evaluate(model, x_va, y_va, sd)
    print(f"epoch {epoch} loss {total / len(loader):.4f}  val mae " + " ".join(f"{v:6.2f}" for v in mae))
