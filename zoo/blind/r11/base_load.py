"""Day-ahead forecast of hourly electricity load from the last three days."""
import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)

cfg = {
    "seed": 11,
    "hours": 24 * 7 * 70,
    "window": 72,
    "horizon": 24,
    "hidden": 96,
    "batch_size": 64,
    "epochs": 14,
    "lr": 0.03,
    "momentum": 0.9,
    "patience": 1,
    "stride": 2,
}


def simulate(cfg):
    rng = np.random.default_rng(cfg["seed"])
    t = np.arange(cfg["hours"])
    hour, day = t % 24, (t // 24) % 7
    temp = np.zeros(len(t))
    for i in range(1, len(t)):
        temp[i] = 0.985 * temp[i - 1] + rng.normal(0, 0.5)
    daily = 420 * np.sin(2 * np.pi * (hour - 8) / 24) + 130 * np.sin(4 * np.pi * (hour - 5) / 24)
    weekend = np.where(day >= 5, -260, 0) + np.where(day >= 5, -0.25 * daily, 0)
    noise = np.zeros(len(t))
    for i in range(1, len(t)):
        noise[i] = 0.9 * noise[i - 1] + rng.normal(0, 22)
    load = 3200 + daily + weekend - 45 * temp + noise
    return load, hour, day


def smooth(load, width=24):
    """Mean of the preceding day, as a slow level feature."""
    c = np.cumsum(np.insert(load, 0, 0.0))
    out = np.empty_like(load)
    for i in range(len(load)):
        a = max(0, i - width + 1)
        out[i] = (c[i + 1] - c[a]) / (i + 1 - a)
    return out


class Windows(Dataset):
    """Each item: past window of features, calendar of the coming day, target load."""

    def __init__(self, feats, calendar, target, start, stop, cfg):
        self.feats, self.calendar, self.target = feats, calendar, target
        self.w, self.h = cfg["window"], cfg["horizon"]
        self.starts = range(start, stop - self.w - self.h + 1, cfg["stride"])

    def __len__(self):
        return len(self.starts)

    def __getitem__(self, i):
        s = self.starts[i]
        m = s + self.w
        return self.feats[s:m], self.calendar[m:m + self.h], self.target[m:m + self.h]


class Forecaster(nn.Module):
    def __init__(self, cfg, n_feats, n_cal):
        super().__init__()
        hid, h = cfg["hidden"], cfg["horizon"]
        self.past = nn.Linear(cfg["window"] * n_feats, hid)
        self.future = nn.Linear(h * n_cal, hid)
        self.mix = nn.Sequential(nn.ReLU(), nn.Linear(hid, hid), nn.ReLU())
        self.head = nn.Sequential(nn.Linear(hid, h))

    def forward(self, past, cal):
        z = self.past(past.flatten(1)) + self.future(cal.flatten(1))
        return self.head(self.mix(z))


def run(cfg):
    torch.manual_seed(cfg["seed"])
    load, hour, day = simulate(cfg)
    n = len(load)
    a, b = int(0.7 * n), int(0.85 * n)

    level = smooth(load)
    raw = np.stack([load, level], 1)
    mean, std = raw[:a].mean(0), raw[:a].std(0)
    feats = torch.tensor((raw - mean) / std, dtype=torch.float32)
    target = torch.tensor((load - mean[0]) / std[0], dtype=torch.float32)
    calendar = torch.tensor(np.stack([
        np.sin(2 * np.pi * hour / 24), np.cos(2 * np.pi * hour / 24), day >= 5], 1), dtype=torch.float32)

    train_ds = Windows(feats, calendar, target, 0, a, cfg)
    val_ds = Windows(feats, calendar, target, a, b, cfg)
    test_ds = Windows(feats, calendar, target, b, n, cfg)
    train_dl = DataLoader(train_ds, cfg["batch_size"], shuffle=True)
    val_dl, test_dl = DataLoader(val_ds, 256), DataLoader(test_ds, 256)

    model = Forecaster(cfg, feats.size(1), calendar.size(1))
    opt = torch.optim.SGD(model.parameters(), lr=cfg["lr"], momentum=cfg["momentum"])
    sched = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, mode="min", factor=0.3, patience=cfg["patience"])
    loss_fn = nn.MSELoss()

    @torch.no_grad()
    def mae(dl):
        model.eval()
        err = [(model(p, c) - y).abs() for p, c, y in dl]
        return torch.cat(err).mean().item() * std[0]

    for epoch in range(cfg["epochs"]):
        model.train()
        total = 0.0
        for past, cal, y in train_dl:
            opt.zero_grad()
            loss = loss_fn(model(past, cal), y)
            loss.backward()
            opt.step()
            total += loss.item()
        val = mae(val_dl)
        sched.step(val)
        print(f"epoch {epoch + 1}/{cfg['epochs']} train loss {total / len(train_dl):.4f} "
              f"val MAE {val:.1f} MW lr {opt.param_groups[0]['lr']:.2e}")

    naive = []
    for s in test_ds.starts:
        m = s + cfg["window"]
        naive.append((target[m:m + 24] - target[m - 24:m]).abs().mean().item())
    print(f"test MAE {mae(test_dl):.1f} MW   (same hour yesterday: {np.mean(naive) * std[0]:.1f} MW)")


if __name__ == "__main__":
    run(cfg)
