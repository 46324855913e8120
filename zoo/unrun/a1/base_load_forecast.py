# Day-ahead electricity load forecast: 168 hours of history -> next 24 hours, GRU encoder, numpy windows.
import json
import math
import os

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

HISTORY, HORIZON = 168, 24
BATCH, EPOCHS, LR = 128, 30, 1e-3
OUT_DIR = "runs/load"


def read_series(path="load_hourly.npy"):
    """float array (T,): hourly load in MW; gaps are NaN, the first hour is observed."""
    load = np.load(path).astype(np.float64)
    idx = np.arange(len(load))
    # carry the last observed value forward
    last = np.maximum.accumulate(np.where(np.isnan(load), 0, idx))
    return load[last]


def calendar_features(n):
    hour = np.arange(n) % 24
    day = (np.arange(n) // 24) % 7
    return np.stack([
        np.sin(2 * np.pi * hour / 24), np.cos(2 * np.pi * hour / 24),
        np.sin(2 * np.pi * day / 7), np.cos(2 * np.pi * day / 7),
    ], axis=1)


class Windows(Dataset):
    """Window i: history [i, i + HISTORY), target [i + HISTORY, i + HISTORY + HORIZON)."""

    def __init__(self, load, cal):
        self.load = torch.tensor(load, dtype=torch.float32)
        self.cal = torch.tensor(cal, dtype=torch.float32)

    def __len__(self):
        return len(self.load) - HISTORY - HORIZON + 1

    def __getitem__(self, i):
        mid, end = i + HISTORY, i + HISTORY + HORIZON
        past = torch.cat([self.load[i:mid, None], self.cal[i:mid]], dim=1)
        future_cal = self.cal[mid:end]
        return past, future_cal, self.load[mid:end]


class Forecaster(nn.Module):
    def __init__(self, n_cal=4, hidden=96, layers=2):
        super().__init__()
        self.gru = nn.GRU(1 + n_cal, hidden, num_layers=layers, batch_first=True, dropout=0.1)
        self.step_net = nn.Sequential(nn.Linear(hidden + n_cal, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, past, future_cal):
        _, h = self.gru(past)
        ctx = h[-1].unsqueeze(1).expand(-1, future_cal.size(1), -1)
        last = past[:, -1:, 0]
        return last + self.step_net(torch.cat([ctx, future_cal], dim=2)).squeeze(2)


def mae_mw(model, loader, std, device):
    model.eval()
    err, n = 0.0, 0
    with torch.no_grad():
        for past, fut, y in loader:
            pred = model(past.to(device), fut.to(device)).cpu()
            err += (pred - y).abs().sum().item()
            n += y.numel()
    return err / n * std


def naive_mae(load_z, std):
    """Same hour one week before."""
    n = len(load_z) - HISTORY - HORIZON + 1
    errs = [np.abs(load_z[i + HISTORY:i + HISTORY + HORIZON] - load_z[i:i + HORIZON]).mean() for i in range(n)]
    return float(np.mean(errs)) * std


def main():
    torch.manual_seed(1)
    os.makedirs(OUT_DIR, exist_ok=True)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    load = read_series()
    cal = calendar_features(len(load))
    t1, t2 = int(0.7 * len(load)), int(0.85 * len(load))
    mean, std = load[:t1].mean(), load[:t1].std()
    z = (load - mean) / std
    train_ds = Windows(z[:t1], cal[:t1])
    valid_ds = Windows(z[t1 - HISTORY:t2], cal[t1 - HISTORY:t2])
    test_ds = Windows(z[t2 - HISTORY:], cal[t2 - HISTORY:])
    train_dl = DataLoader(train_ds, BATCH, shuffle=True, drop_last=True)
    valid_dl, test_dl = DataLoader(valid_ds, 512), DataLoader(test_ds, 512)

    model = Forecaster().to(device)
    opt = torch.optim.Adam(model.parameters(), lr=LR)
    steps = EPOCHS * len(train_dl)
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: 0.5 * (1 + math.cos(math.pi * min(s, steps) / steps)))
    start, best = 0, float("inf")
    resume = os.path.join(OUT_DIR, "last.pt")
    if os.path.exists(resume):
        ck = torch.load(resume, map_location=device, weights_only=False)
        model.load_state_dict(ck["model"])
        opt.load_state_dict(ck["opt"])
        sched.load_state_dict(ck["sched"])
        start, best = ck["epoch"] + 1, ck["best"]

    for epoch in range(start, EPOCHS):
        model.train()
        running = 0.0
        for past, fut, y in train_dl:
            past, fut, y = past.to(device), fut.to(device), y.to(device)
            loss = nn.functional.l1_loss(model(past, fut), y)
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            sched.step()
            running += loss.item()
        val = mae_mw(model, valid_dl, std, device)
        print(json.dumps({"epoch": epoch, "train": running / len(train_dl) * std, "valid": val}))
        if val < best:
            best = val
            torch.save(model.state_dict(), os.path.join(OUT_DIR, "best.pt"))
        torch.save({"model": model.state_dict(), "opt": opt.state_dict(), "sched": sched.state_dict(),
                    "epoch": epoch, "best": best}, resume)

    model.load_state_dict(torch.load(os.path.join(OUT_DIR, "best.pt"), map_location=device))
    print("test MAE (MW):", mae_mw(model, test_dl, std, device), "weekly naive:", naive_mae(z[t2 - HISTORY:], std))


if __name__ == "__main__":
    main()
