"""Six-hour power forecast for one wind turbine: temporal convolutions over measurements plus weather forecast."""
import argparse
import copy
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

RATED = 3.0  # MW


def simulate(n_hours, rng):
    """Hourly measurements and day-ahead weather forecast at one site."""
    t = np.arange(n_hours)
    year, day = 2 * np.pi * t / 8760, 2 * np.pi * t / 24
    slow, fast = np.zeros(n_hours), np.zeros(n_hours)
    turn = np.zeros(n_hours)
    e = rng.normal(size=(3, n_hours))
    for i in range(1, n_hours):
        slow[i] = 0.985 * slow[i - 1] + 0.17 * e[0, i]
        fast[i] = 0.80 * fast[i - 1] + 0.60 * e[1, i]
        turn[i] = 0.97 * turn[i - 1] + 0.24 * e[2, i]
    mean = 8.0 + 1.3 * np.cos(year) + 0.6 * np.sin(day - 1.0)
    speed = np.clip(mean + 2.4 * slow + 0.8 * fast, 0.2, None)
    direction = (230 + 70 * turn + 20 * slow) % 360
    temperature = 9 - 9 * np.cos(year) + 3 * np.sin(day - 2.0) + rng.normal(0, 1, n_hours)
    pressure = 1013 - 7 * slow + rng.normal(0, 1.5, n_hours)

    density = pressure * 100 / (287.05 * (temperature + 273.15)) / 1.225
    wake = 1.0
    for centre, width, depth in ((200, 16, 0.38), (285, 20, 0.45), (60, 25, 0.30)):
        off = (direction - centre + 180) % 360 - 180
        wake = wake * (1 - depth * np.exp(-0.5 * (off / width) ** 2))
    v = speed * wake
    power = RATED / (1 + np.exp(-(v * density ** 0.33 - 8.2) / 1.15))
    power = np.where((v < 3.0) | (speed > 24.0), 0.0, power)
    icing = (temperature < 1.0) & (pressure < 1012)
    power = np.clip(power * np.where(icing, 0.75, 1.0) * (1 + rng.normal(0, 0.03, n_hours)), 0, RATED)

    return {"speed": speed + rng.normal(0, 0.3, n_hours), "direction": (direction + rng.normal(0, 4, n_hours)) % 360,
            "temperature": temperature, "pressure": pressure, "power": power,
            "fc_speed": np.clip(speed - 0.4 * fast + rng.normal(0, 0.8, n_hours), 0, None),
            "fc_direction": (direction + rng.normal(0, 8, n_hours)) % 360}


def smooth(x, k=5):
    """Rolling mean over k hours, same length as x."""
    kernel = np.ones(k) / k
    padded = np.concatenate([np.full(k - 1, x[0]), x])
    return np.convolve(padded, kernel, mode="valid")


def circular(direction):
    rad = np.deg2rad(direction)
    return np.stack([np.sin(rad), np.cos(rad)], axis=1)


def build_features(d):
    past = np.column_stack([d["speed"], smooth(d["speed"]), circular(d["direction"]), d["temperature"],
                            d["pressure"], d["power"], smooth(d["power"])])
    future = np.column_stack([d["fc_speed"], circular(d["fc_direction"])])
    return past.astype(np.float32), future.astype(np.float32), d["power"].astype(np.float32)


class Windows:
    """Input: the last `length` hours and the forecast for the next `horizon` hours; target: power in those hours."""

    def __init__(self, past, future, power, length, horizon, stride=1):
        ends = np.arange(length, len(power) - horizon + 1, stride)
        ahead = ends[:, None] + np.arange(horizon)
        self.past = torch.from_numpy(past[ends[:, None] - length + np.arange(length)]).transpose(1, 2)
        self.future = torch.from_numpy(future[ahead]).flatten(1)
        self.target = torch.from_numpy(power[ahead])
        self.last = torch.from_numpy(power[ends - 1])

    def __len__(self):
        return len(self.target)

    def batches(self, size, shuffle):
        order = torch.randperm(len(self)) if shuffle else torch.arange(len(self))
        for idx in order.split(size):
            yield self.past[idx], self.future[idx], self.target[idx]


class CausalBlock(nn.Module):
    def __init__(self, cin, cout, dilation, dropout, k=3):
        super().__init__()
        self.pad = (k - 1) * dilation
        self.conv = nn.Conv1d(cin, cout, k, dilation=dilation)
        self.skip = nn.Conv1d(cin, cout, 1) if cin != cout else nn.Identity()
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        return self.skip(x) + self.drop(F.relu(self.conv(F.pad(x, (self.pad, 0)))))


class TCN(nn.Module):
    def __init__(self, n_past, n_future, horizon, width=24, dropout=0.1):
        super().__init__()
        chans = [n_past] + [width] * 4
        self.body = nn.Sequential(*[CausalBlock(a, b, 2 ** i, dropout) for i, (a, b) in enumerate(zip(chans, chans[1:]))])
        self.head = nn.Sequential(nn.Linear(width + n_future, 64), nn.ReLU(), nn.Dropout(dropout),
                                  nn.Linear(64, horizon))

    def forward(self, past, future):
        h = self.body(past)[:, :, -1]
        return self.head(torch.cat([h, future], dim=1))


class Trainer:
    def __init__(self, model, train, val, scale, args):
        self.model, self.train_set, self.val_set, self.args = model, train, val, args
        self.y_mean, self.y_std = scale
        self.opt = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=1e-3)
        self.sched = torch.optim.lr_scheduler.CosineAnnealingLR(self.opt, args.epochs)

    def epoch(self):
        self.model.train()
        total = 0.0
        for past, future, y in self.train_set.batches(self.args.batch_size, shuffle=True):
            loss = F.mse_loss(self.model(past, future), y)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            total += loss.item() * len(y)
        self.sched.step()
        return total / len(self.train_set)

    @torch.no_grad()
    def predict(self, windows):
        self.model.eval()
        out = torch.cat([self.model(p, f) for p, f, _ in windows.batches(1024, shuffle=False)])
        return (out * self.y_std + self.y_mean).clamp(0, RATED)

    def nmae(self, windows):
        truth = windows.target * self.y_std + self.y_mean
        return 100 * ((self.predict(windows) - truth).abs().mean(0) / RATED)

    def fit(self):
        best, state, start = float("inf"), None, time.time()
        for e in range(1, self.args.epochs + 1):
            loss = self.epoch()
            val = self.nmae(self.val_set).mean().item()
            if val < best:
                best, state = val, copy.deepcopy(self.model.state_dict())
            print(f"epoch {e:2d}  train mse {loss:.4f}  val nMAE {val:.2f}%  ({time.time() - start:.1f}s)")
        self.model.load_state_dict(state)
        return best


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=10)
    ap.add_argument("--batch-size", type=int, default=64)
    ap.add_argument("--lr", type=float, default=3e-3)
    ap.add_argument("--length", type=int, default=36)
    ap.add_argument("--horizon", type=int, default=6)
    ap.add_argument("--seed", type=int, default=4)
    args = ap.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)

    past, future, power = build_features(simulate(2 * 8760, np.random.default_rng(args.seed)))
    a, b = int(0.55 * len(power)), int(0.75 * len(power))
    scaled = []
    for x in (past, future, power):
        mu, sd = x[:a].mean(0), x[:a].std(0)
        scaled.append((x - mu) / sd)
    y_scale = (float(power[:a].mean()), float(power[:a].std()))
    cut = lambda lo, hi, stride=1: Windows(*[x[lo:hi] for x in scaled], args.length, args.horizon, stride)
    train, val, test = cut(0, a), cut(a, b), cut(b, len(power))

    model = TCN(past.shape[1], future.shape[1] * args.horizon, args.horizon)
    trainer = Trainer(model, train, val, y_scale, args)
    persistence = (test.last[:, None] - test.target).abs().mean().item() * y_scale[1] / RATED * 100
    print(f"{len(train)} train, {len(val)} val, {len(test)} test windows; persistence nMAE {persistence:.2f}%")
    best = trainer.fit()
    steps = trainer.nmae(test)
    print("test nMAE by hour: " + "  ".join(f"+{h + 1}h {v:.2f}%" for h, v in enumerate(steps.tolist())))
    print(f"best val nMAE {best:.2f}%  test nMAE {steps.mean().item():.2f}%")


if __name__ == "__main__":
    main()
