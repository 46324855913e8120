"""Fasting glucose at a visit, from labs and treatment; several visits per patient, four hospitals."""
import numpy as np
import torch
import torch.nn as nn
from sklearn.metrics import mean_absolute_error, r2_score
from sklearn.preprocessing import StandardScaler

torch.set_num_threads(1)

settings = {
    "patients": 500,
    "visits": 10,
    "batch": 32,
    "steps": 2500,
    "report_every": 250,
    "lr": 1e-3,
    "hidden": 96,
}


def collect(patients, visits, seed):
    rng = np.random.default_rng(seed)
    static = rng.normal(size=(patients, 9))
    own = rng.normal(0, 18, patients)
    hospital_of = rng.integers(0, 4, patients)
    pid = np.repeat(np.arange(patients), visits)
    n = len(pid)
    dyn = rng.normal(size=(n, 6))
    x = np.concatenate([static[pid], dyn], 1)
    glucose = (135 + 14 * static[pid, 0] - 8 * static[pid, 1] + 16 * dyn[:, 0] - 11 * np.abs(dyn[:, 1])
               + 9 * dyn[:, 2] * static[pid, 2] + 10 * np.tanh(2 * dyn[:, 3]) + own[pid] + rng.normal(0, 7, n))
    glucose = np.clip(glucose, 45, None)
    hospital = hospital_of[pid]
    # the new analysers of hospital 2 report another unit
    unit = np.where((hospital == 2) & (rng.random(n) < 0.7), "mmol/L", "mg/dL")
    value = np.where(unit == "mmol/L", glucose / 18.0, glucose)
    return x.astype(np.float32), value, unit, hospital, pid


def make_model(d_in, width):
    return nn.Sequential(
        nn.Linear(d_in, width), nn.SiLU(),
        nn.Linear(width, width), nn.SiLU(),
        nn.Linear(width, 1),
    )


class Batches:
    """Endless mini-batches, a new order for every pass."""

    def __init__(self, x, y, size, seed=0):
        self.x, self.y, self.size = x, y, size
        self.gen = torch.Generator().manual_seed(seed)
        self.per_pass = len(x) // size
        self.order = torch.randperm(len(x), generator=self.gen)
        self.k = 0

    def next(self):
        if self.k == self.per_pass:
            self.order = torch.randperm(len(self.x), generator=self.gen)
            self.k = 0
        start = self.k * self.size
        idx = self.order[start:start + self.size]
        self.k += 1
        return self.x[idx], self.y[idx]


def run(cfg):
    torch.manual_seed(1)
    rng = np.random.default_rng(1)
    x, value, unit, hospital, pid = collect(cfg["patients"], cfg["visits"], seed=8)
    y = np.where(unit == "mmol/L", value * 18.0, value)
    shuffled = rng.permutation(cfg["patients"])
    val_rows = np.isin(pid, shuffled[: cfg["patients"] // 4])

    xs, ys = StandardScaler().fit(x[~val_rows]), StandardScaler().fit(y[~val_rows, None])
    x_tr = torch.tensor(xs.transform(x[~val_rows]), dtype=torch.float32)
    y_tr = torch.tensor(ys.transform(y[~val_rows, None]), dtype=torch.float32)
    x_va = torch.tensor(xs.transform(x[val_rows]), dtype=torch.float32)
    y_va = y[val_rows]
    print(f"{len(x_tr)} training visits, {len(x_va)} validation visits, mean {y.mean():.1f} mg/dL, sd {y.std():.1f}")

    model = make_model(x.shape[1], cfg["hidden"])
    optim = torch.optim.AdamW(model.parameters(), lr=cfg["lr"], weight_decay=0.05)
    lr = torch.optim.lr_scheduler.CosineAnnealingLR(optim, cfg["steps"])
    batches = Batches(x_tr, y_tr, cfg["batch"])
    recent = []
    for step in range(1, cfg["steps"] + 1):
        xb, yb = batches.next()
        loss = nn.functional.smooth_l1_loss(model(xb), yb)
        optim.zero_grad()
        loss.backward()
        optim.step()
        lr.step()
        recent.append(loss.item())
        if step % cfg["report_every"] == 0:
            model.eval()
            with torch.no_grad():
                pred = ys.inverse_transform(model(x_va).numpy()).ravel()
            model.train()
            print(f"step {step:5d} train loss {np.mean(recent):.4f} val MAE {mean_absolute_error(y_va, pred):.2f} mg/dL "
                  f"val R2 {r2_score(y_va, pred):.3f}")
            recent = []


if __name__ == "__main__":
    run(settings)
