"""Twelve-hour forecast of an hourly electricity load, encoder-decoder GRU."""
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)


@dataclass
class Config:
    past: int = 48
    ahead: int = 12
    hidden: int = 32
    batch: int = 64
    epochs: int = 8
    lr: float = 4e-3
    seed: int = 2


def read_load(hours: int = 9000, seed: int = 21) -> np.ndarray:
    rng = np.random.default_rng(seed)
    t = np.arange(hours)
    day = 14 * np.sin(2 * np.pi * (t % 24 - 8) / 24) + 6 * np.sin(4 * np.pi * (t % 24) / 24)
    week = np.where((t // 24) % 7 >= 5, -9.0, 0.0)
    year = 10 * np.cos(2 * np.pi * t / 8760)
    ar, level = np.zeros(hours), 0.0
    for i in range(hours):
        level = 0.93 * level + rng.normal(0, 2.0)
        ar[i] = level
    return (100 + day + week + year + ar + rng.normal(0, 0.8, hours)).astype(np.float32)


def daily_level(v: np.ndarray) -> np.ndarray:
    padded = np.concatenate([np.full(23, v[0], np.float32), v])
    return np.convolve(padded, np.ones(24, np.float32) / 24, mode="valid")


def calendar(hours: int) -> np.ndarray:
    t = np.arange(hours)
    cols = [np.sin(2 * np.pi * t / 24), np.cos(2 * np.pi * t / 24), np.sin(4 * np.pi * t / 24),
            np.cos(4 * np.pi * t / 24), ((t // 24) % 7 >= 5).astype(float)]
    return np.stack(cols, 1).astype(np.float32)


class Windows(Dataset):
    def __init__(self, values, level, cal, starts, cfg):
        self.values, self.level, self.cal = values, level, cal
        self.starts, self.cfg = starts, cfg

    def __len__(self):
        return len(self.starts)

    def __getitem__(self, k):
        s = self.starts[k]
        mid, end = s + self.cfg.past, s + self.cfg.past + self.cfg.ahead
        w = self.values[s:end]
        base = w[: self.cfg.past].mean()
        w = w - base
        lvl = self.level[s:mid] - base
        past = np.column_stack([w[: self.cfg.past], lvl, self.cal[s:mid]])
        return torch.from_numpy(past), torch.from_numpy(self.cal[mid:end]), torch.from_numpy(w[self.cfg.past:])


class Forecaster(nn.Module):
    def __init__(self, cfg: Config):
        super().__init__()
        self.enc = nn.GRU(7, cfg.hidden, batch_first=True)
        self.cell = nn.GRUCell(6, cfg.hidden)
        self.out = nn.Linear(cfg.hidden, 1)

    def forward(self, past, cal, target=None):
        _, h = self.enc(past)
        h, prev, outs = h[0], past[:, -1, :1], []
        for i in range(cal.shape[1]):
            h = self.cell(torch.cat([prev, cal[:, i]], 1), h)
            step = prev + self.out(h)
            outs.append(step)
            prev = step if target is None else target[:, i:i + 1]
        return torch.cat(outs, 1)


def validate(net, loader, scale):
    net.eval()
    err = []
    with torch.no_grad():
        for past, cal, y in loader:
            err.append((net(past, cal) - y).abs() * scale)
    return torch.cat(err).mean(0)


def main(cfg: Config = Config()):
    torch.manual_seed(cfg.seed)
    load = read_load()
    cut = 7200
    mean, std = load[:cut].mean(), load[:cut].std()
    values = ((load - mean) / std).astype(np.float32)
    level = daily_level(values).astype(np.float32)
    cal = calendar(len(load))
    span = cfg.past + cfg.ahead
    train = Windows(values, level, cal, np.arange(0, cut - span, 3), cfg)
    val = Windows(values, level, cal, np.arange(cut, len(load) - span, 5), cfg)
    train_dl = DataLoader(train, batch_size=cfg.batch, shuffle=True, drop_last=True)
    val_dl = DataLoader(val, batch_size=128)

    v = load
    naive = np.mean([np.abs(v[s + 48:s + 60] - v[s + 24:s + 36]).mean() for s in val.starts])
    print(f"windows: {len(train)} train, {len(val)} val; same hour yesterday MAE {naive:.2f} MW")
    net = Forecaster(cfg)
    opt = torch.optim.Adam(net.parameters(), lr=cfg.lr)
    sched = torch.optim.lr_scheduler.ExponentialLR(opt, 0.8)
    for ep in range(1, cfg.epochs + 1):
        net.train()
        tot = 0.0
        for past, cal_b, y in train_dl:
            forced = y if torch.rand(()) < 0.3 else None
            loss = (net(past, cal_b, forced) - y).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            opt.step()
            tot += loss.item()
        mae = validate(net, val_dl, float(std))
        sched.step()
        print(f"epoch {ep:2d} train mse {tot / len(train_dl):.4f} val MAE {mae.mean():.3f} MW (hour 1 {mae[0]:.2f}, hour 12 {mae[-1]:.2f})")


if __name__ == "__main__":
    main()
