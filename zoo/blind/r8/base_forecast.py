"""Hourly demand of several shops: LSTM trained one step ahead, tested on 24-step roll-outs."""
import copy
import math

import numpy as np
import torch
import torch.nn as nn

torch.set_num_threads(1)
torch.manual_seed(2)
rng = np.random.default_rng(2)
SHOPS, HOURS, WINDOW, HORIZON = 6, 900, 48, 24

t = np.arange(HOURS)
series = []
for s in range(SHOPS):
    level, amp, phase = rng.uniform(80, 400), rng.uniform(0.2, 0.5), rng.uniform(0, 2 * math.pi)
    day = np.sin(2 * math.pi * t / 24 + phase) + 0.6 * np.sin(4 * math.pi * t / 24 + 2 * phase)
    rain = 1 + 0.25 * np.sin(2 * math.pi * t / 90 + phase)
    ar = np.zeros(HOURS)
    for k in range(1, HOURS):
        ar[k] = 0.5 * ar[k - 1] + rng.normal(0, 0.03)
    series.append(level * (1 + amp * day * rain + ar + 0.00005 * t))
series = np.stack(series)                      # shops x hours

train_end, val_end = 600, 740
mean = series[:, :train_end].mean(axis=1, keepdims=True)
std = series[:, :train_end].std(axis=1, keepdims=True)
scaled = torch.tensor((series - mean) / std, dtype=torch.float32)
clock = torch.tensor(np.stack([np.sin(2 * math.pi * t / 24), np.cos(2 * math.pi * t / 24)], 1), dtype=torch.float32)


def windows(start, end):
    """inputs are hours a .. a+W-1, targets the same hours moved on by one"""
    xs, ys = [], []
    for s in range(SHOPS):
        for a in range(start, end - WINDOW, 3):
            value = scaled[s, a:a + WINDOW].unsqueeze(1)
            xs.append(torch.cat([value, clock[a + 1:a + WINDOW + 1]], dim=1))
            ys.append(scaled[s, a + 1:a + WINDOW + 1])
    return torch.stack(xs), torch.stack(ys)


x_train, y_train = windows(0, train_end)
x_val, y_val = windows(train_end, val_end)


class Forecaster(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.lstm = nn.LSTM(3, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 1)

    def forward(self, x, state=None):
        h, state = self.lstm(x, state)
        return self.out(h).squeeze(-1), state


@torch.no_grad()
def rollout(model, start, end):
    """error in units of the shops, 24 hours ahead without seeing them; next to it: the value a day before"""
    model.eval()
    errors, naive = [], []
    for a in range(start, end - WINDOW - HORIZON, 12):
        value = scaled[:, a:a + WINDOW].unsqueeze(-1)
        hour = clock[a + 1:a + WINDOW + 1].expand(SHOPS, -1, -1)
        pred, state = model(torch.cat([value, hour], -1))
        last = pred[:, -1:]
        guess = [last]
        for k in range(1, HORIZON):
            hour = clock[a + WINDOW + k:a + WINDOW + k + 1].expand(SHOPS, -1, -1)
            last, state = model(torch.cat([last.unsqueeze(-1), hour], -1), state)
            guess.append(last)
        guess = torch.cat(guess, 1).numpy() * std + mean
        truth = series[:, a + WINDOW:a + WINDOW + HORIZON]
        errors.append(np.abs(guess - truth).mean())
        naive.append(np.abs(series[:, a + WINDOW - 24:a + WINDOW] - truth).mean())
    return float(np.mean(errors)), float(np.mean(naive))


model = Forecaster()
optimizer = torch.optim.Adam(model.parameters(), lr=8e-3)
EPOCHS, BATCH = 14, 64
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=EPOCHS, eta_min=2e-4)
criterion = nn.SmoothL1Loss(beta=0.5)
best_val, best_state = float("inf"), None

for epoch in range(EPOCHS):
    model.train()
    order = torch.randperm(len(x_train))
    total = 0.0
    for b in range(0, len(order), BATCH):
        idx = order[b:b + BATCH]
        xb, yb = x_train[idx], y_train[idx]
        pred, _ = model(xb)
        loss = criterion(pred, yb)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.item() * len(idx)
    scheduler.step()
    model.eval()
    with torch.no_grad():
        val = criterion(model(x_val)[0], y_val).item()
    if val < best_val:
        best_val, best_state = val, copy.deepcopy(model.state_dict())
    if epoch % 2 == 1:
        print(f"epoch {epoch:2d} train {total / len(order):.4f} val {val:.4f} lr {scheduler.get_last_lr()[0]:.1e}")

model.load_state_dict(best_state)
mae, naive = rollout(model, val_end, HOURS)
print(f"one-step val loss {best_val:.4f} | test 24 h roll-out MAE {mae:.2f}, same hour yesterday {naive:.2f}")
