"""Hourly electricity load forecasting: 7 days in, 24 hours out."""
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


@dataclass
class Config:
    csv: str = "load.csv"
    context: int = 168
    horizon: int = 24
    hidden: int = 64
    batch_size: int = 128
    epochs: int = 40
    lr: float = 1e-3
    train_end: str = "2018-01-01"
    val_end: str = "2019-01-01"
    ckpt: str = "forecast.pt"


class Windows(Dataset):
    """Features and target of one contiguous period, cut to sliding windows."""

    def __init__(self, feats, load, cfg):
        self.feats = torch.from_numpy(feats)
        self.load = torch.from_numpy(load)
        self.cfg = cfg

    def __len__(self):
        return len(self.load) - self.cfg.context - self.cfg.horizon + 1

    def __getitem__(self, i):
        mid = i + self.cfg.context
        end = mid + self.cfg.horizon
        past = torch.cat([self.load[i:mid, None], self.feats[i:mid]], dim=1)
        return past, self.feats[mid:end], self.load[mid:end]


class Seq2Seq(nn.Module):
    def __init__(self, n_feats, hidden):
        super().__init__()
        self.encoder = nn.GRU(1 + n_feats, hidden, batch_first=True)
        self.decoder = nn.GRUCell(1 + n_feats, hidden)
        self.out = nn.Linear(hidden, 1)

    def forward(self, past, future_feats, target=None, teacher=0.0):
        _, h = self.encoder(past)
        h, prev = h[0], past[:, -1, 0]
        preds = []
        for t in range(future_feats.size(1)):
            h = self.decoder(torch.cat([prev[:, None], future_feats[:, t]], dim=1), h)
            pred = self.out(h).squeeze(1)
            preds.append(pred)
            if target is not None and torch.rand(()).item() < teacher:
                prev = target[:, t]
            else:
                prev = pred
        return torch.stack(preds, dim=1)


def calendar(index):
    hour = 2 * np.pi * index.hour / 24
    day = 2 * np.pi * index.dayofweek / 7
    year = 2 * np.pi * index.dayofyear / 365.25
    cols = [f(a) for a in (hour, day, year) for f in (np.sin, np.cos)]
    return np.stack(cols, axis=1).astype(np.float32)


def load_data(cfg):
    df = pd.read_csv(cfg.csv, parse_dates=["time"], index_col="time").sort_index()
    series = df["load"].asfreq("h").ffill()
    train_mask = series.index < cfg.train_end
    mean, std = series[train_mask].mean(), series[train_mask].std()
    z = ((series - mean) / std).to_numpy(np.float32)
    feats = calendar(series.index)
    n_train = int(train_mask.sum())
    n_val = int((series.index < cfg.val_end).sum())
    # evaluation periods get the last context of the period before as input only
    cuts = [(0, n_train), (n_train - cfg.context, n_val), (n_val - cfg.context, len(z))]
    return [Windows(feats[a:b], z[a:b], cfg) for a, b in cuts], float(mean), float(std)


@torch.no_grad()
def evaluate(model, loader, mean, std, device):
    model.eval()
    abs_err, abs_pct, n = 0.0, 0.0, 0
    for past, fut, y in loader:
        pred = model(past.to(device), fut.to(device)).cpu() * std + mean
        y = y * std + mean
        abs_err += (pred - y).abs().sum().item()
        abs_pct += ((pred - y).abs() / y.abs().clamp(min=1e-6)).sum().item()
        n += y.numel()
    return abs_err / n, 100 * abs_pct / n


def main(cfg=Config()):
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    (train, val, test), mean, std = load_data(cfg)
    train_dl = DataLoader(train, cfg.batch_size, shuffle=True, drop_last=True)
    val_dl = DataLoader(val, 512)
    test_dl = DataLoader(test, 512)
    model = Seq2Seq(train.feats.size(1), cfg.hidden).to(device)
    opt = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    loss_fn = nn.SmoothL1Loss()
    best = float("inf")
    for epoch in range(cfg.epochs):
        model.train()
        teacher = max(0.0, 0.8 * (1 - epoch / (0.5 * cfg.epochs)))
        total = 0.0
        for past, fut, y in train_dl:
            past, fut, y = past.to(device), fut.to(device), y.to(device)
            pred = model(past, fut, y, teacher)
            loss = loss_fn(pred, y)
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            total += loss.item()
        mae, mape = evaluate(model, val_dl, mean, std, device)
        print(f"{epoch:2d} loss {total / len(train_dl):.4f} val MAE {mae:.1f} MAPE {mape:.2f}%")
        if mae < best:
            best = mae
            torch.save({"model": model.state_dict(), "mean": mean, "std": std}, cfg.ckpt)
    model.load_state_dict(torch.load(cfg.ckpt, map_location=device)["model"])
    mae, mape = evaluate(model, test_dl, mean, std, device)
    print(f"test MAE {mae:.1f} MAPE {mape:.2f}%")


if __name__ == "__main__":
    main()
