"""Rent prediction: pandas features, split by building, log target. Data: rents.csv with one row per listing."""
from dataclasses import dataclass, field
from typing import List

import numpy as np
import pandas as pd
import torch
from torch import nn


@dataclass
class Config:
    csv: str = "rents.csv"
    num_cols: List[str] = field(default_factory=lambda: [
        "area_m2", "rooms", "floor", "year_built", "km_to_centre", "area_per_room",
        "district_mean", "month_sin", "month_cos"])
    hidden: List[int] = field(default_factory=lambda: [128, 64])
    epochs: int = 80
    batch_size: int = 128
    lr: float = 3e-3
    valid_share: float = 0.2
    patience: int = 12
    seed: int = 5


def load(cfg):
    df = pd.read_csv(cfg.csv, parse_dates=["listed_on"])
    df = df[(df["area_m2"] > 5) & (df["rent_eur"] > 50)].copy()
    df["area_per_room"] = df["area_m2"] / df["rooms"].clip(lower=1)
    angle = 2 * np.pi * (df["listed_on"].dt.month - 1) / 12
    df["month_sin"], df["month_cos"] = np.sin(angle), np.cos(angle)
    return df.reset_index(drop=True)


def split_by_building(df, cfg):
    rng = np.random.default_rng(cfg.seed)
    buildings = df["building_id"].unique()
    rng.shuffle(buildings)
    held = set(buildings[: int(len(buildings) * cfg.valid_share)])
    mask = df["building_id"].isin(held)
    return df[~mask].copy(), df[mask].copy()


def add_district_mean(train, valid, n_folds=5):
    """Mean rent per square metre of the district; out of fold (by building) for the training rows."""
    per_m2 = train["rent_eur"] / train["area_m2"]
    fold_of = {b: i % n_folds for i, b in enumerate(train["building_id"].unique())}
    fold = train["building_id"].map(fold_of)
    train["district_mean"] = 0.0
    for k in range(n_folds):
        rest, mine = fold != k, fold == k
        means = per_m2[rest].groupby(train.loc[rest, "district"]).mean()
        train.loc[mine, "district_mean"] = train.loc[mine, "district"].map(means).fillna(per_m2[rest].mean())
    full = per_m2.groupby(train["district"]).mean()
    valid["district_mean"] = valid["district"].map(full).fillna(per_m2.mean())
    return train, valid


class Standardiser:
    def fit(self, frame):
        self.mean = frame.mean()
        self.std = frame.std().replace(0.0, 1.0)
        return self

    def transform(self, frame):
        z = ((frame - self.mean) / self.std).fillna(0.0)
        return torch.tensor(z.to_numpy(), dtype=torch.float32)


def make_mlp(n_in, hidden):
    layers = []
    for h in hidden:
        layers += [nn.Linear(n_in, h), nn.SiLU(), nn.Dropout(0.1)]
        n_in = h
    return nn.Sequential(*layers, nn.Linear(n_in, 1))


def run(cfg):
    torch.manual_seed(cfg.seed)
    train, valid = split_by_building(load(cfg), cfg)
    train, valid = add_district_mean(train, valid)
    scaler = Standardiser().fit(train[cfg.num_cols])
    x_tr, x_va = scaler.transform(train[cfg.num_cols]), scaler.transform(valid[cfg.num_cols])

    log_tr = torch.tensor(np.log(train["rent_eur"].to_numpy()), dtype=torch.float32)
    y_mean, y_std = log_tr.mean(), log_tr.std()
    y_tr = (log_tr - y_mean) / y_std
    rent_va = torch.tensor(valid["rent_eur"].to_numpy(), dtype=torch.float32)

    model = make_mlp(x_tr.shape[1], cfg.hidden)
    opt = torch.optim.AdamW(model.parameters(), lr=cfg.lr, weight_decay=1e-3)
    sched = torch.optim.lr_scheduler.StepLR(opt, step_size=20, gamma=0.5)
    loss_fn = nn.HuberLoss()

    best = {"mae": float("inf"), "state": None, "epoch": -1}
    for epoch in range(cfg.epochs):
        model.train()
        perm = torch.randperm(len(x_tr))
        losses = []
        for i in range(0, len(perm), cfg.batch_size):
            rows = perm[i:i + cfg.batch_size]
            pred = model(x_tr[rows]).squeeze(-1)
            loss = loss_fn(pred, y_tr[rows])
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.item())
        sched.step()

        model.eval()
        with torch.no_grad():
            rent_pred = torch.exp(model(x_va).squeeze(-1) * y_std + y_mean)
        mae = (rent_pred - rent_va).abs().mean().item()
        mape = ((rent_pred - rent_va).abs() / rent_va).mean().item()
        print(f"{epoch:3d} loss {np.mean(losses):.4f} MAE {mae:.1f} EUR MAPE {100 * mape:.1f} %")
        if mae < best["mae"]:
            best = {"mae": mae, "epoch": epoch,
                    "state": {k: v.clone() for k, v in model.state_dict().items()}}
        if epoch - best["epoch"] >= cfg.patience:
            break

    torch.save({"state": best["state"], "x_mean": scaler.mean, "x_std": scaler.std,
                "y_mean": y_mean, "y_std": y_std}, "rent_mlp.pt")
    baseline = (rent_va - float(train["rent_eur"].median())).abs().mean().item()
    print(f"best MAE {best['mae']:.1f} at epoch {best['epoch']} (median baseline {baseline:.1f})")


if __name__ == "__main__":
    run(Config())
