"""Daily sales of one shop, walk-forward: months in order, each month forecast before it is trained on."""
import numpy as np
import torch
import torch.nn as nn

torch.set_num_threads(1)
torch.manual_seed(0)
rng = np.random.default_rng(10)
DAYS = 2400
t = np.arange(DAYS)
sales = 200 + 0.05 * t + 30 * np.sin(2 * np.pi * t / 365.25) + np.array([-20, -25, -10, 0, 25, 60, -30])[t % 7]
promo = (rng.random(DAYS) < 0.12).astype(float)
sales = sales + 45 * promo * (1 + 0.3 * (t % 7 == 5)) + rng.normal(0, 9, DAYS)
LAGS = [7, 14, 21, 28, 364]


def row(d):
    week = np.eye(7)[d % 7]
    lags = [(sales[d - k] - sales[d - 35:d - 7].mean()) / 50 for k in LAGS]
    return np.concatenate([week, [promo[d]], [promo[d - k] for k in LAGS], lags, [np.sin(2 * np.pi * d / 365.25), np.cos(2 * np.pi * d / 365.25)]])


first = 365
X = torch.tensor(np.stack([row(d) for d in range(first, DAYS)]), dtype=torch.float32)
level = np.array([sales[d - 35:d - 7].mean() for d in range(first, DAYS)])
Y = torch.tensor((sales[first:] - level) / 50, dtype=torch.float32)
net = nn.Sequential(nn.Linear(X.shape[1], 32), nn.Tanh(), nn.Linear(32, 1))
opt = torch.optim.Adam(net.parameters(), lr=1.5e-3)
errors, weekly = [], []
for n, start in enumerate(range(0, len(X) - 30, 30)):
    month = slice(start, start + 30)
    with torch.no_grad():
        ahead = net(X[month]).squeeze(1)
    errors.append((ahead - Y[month]).abs().mean().item() * 50)
    weekly.append(np.abs(sales[first + start:first + start + 30] - sales[first + start - 7:first + start + 23]).mean())
    lo = max(0, start - 330)
    losses = []
    for _ in range(8):
        # oldest to newest, the latest month has the last word
        for i in range(lo, start + 30, 15):
            loss = (net(X[i:i + 15]).squeeze(1) - Y[i:i + 15]).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.item())
    if n % 6 == 5:
        print(f"month {n + 1:2d} train mse {np.mean(losses):.4f} forecast MAE of the last six months {np.mean(errors[-6:]):.1f} (same day last week {np.mean(weekly[-6:]):.1f})")
