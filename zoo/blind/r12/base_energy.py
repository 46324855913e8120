"""Building energy - baseline NN with category embeddings (kaggle style)."""
import numpy as np
import torch
import torch.nn as nn

SEED = 2021
EPOCHS = 12
BATCH = 256
LR = 4e-3

np.random.seed(SEED)
torch.manual_seed(SEED)

# ------------------------------------------------------------------ data
N_BUILD = 60
USES = np.array(["office", "school", "retail", "hotel", "hospital", "lab"])
ZONES = np.array(["coast", "north", "desert", "valley"])

rng = np.random.default_rng(SEED)
b_use = rng.integers(0, len(USES), N_BUILD)
b_zone = rng.integers(0, len(ZONES), N_BUILD)
b_area = np.exp(rng.normal(8.5, 0.8, N_BUILD))
b_year = rng.integers(1950, 2020, N_BUILD)
b_quirk = rng.normal(0, 0.45, N_BUILD)

N_ROWS = 32000
start = 1577836800
ts = np.sort(start + 3600 * rng.integers(0, 24 * 300, N_ROWS))
bid = rng.integers(0, N_BUILD, N_ROWS)
# sites came online at different dates, a few were closed before the end of the log
online = start + 3600 * rng.integers(0, 24 * 90, N_BUILD)
closed = np.full(N_BUILD, start + 3600 * 24 * 400)
change = rng.permutation(N_BUILD)
online[change[:2]] = start + 3600 * 24 * 270
closed[change[2:9]] = start + 3600 * 24 * 200
keep = (ts >= online[bid]) & (ts < closed[bid])
ts, bid = ts[keep], bid[keep]

hour = (ts // 3600) % 24
dow = (ts // 86400) % 7
doy = (ts - start) / 86400
temp = (15 + 10 * np.sin(2 * np.pi * (doy - 100) / 365) + 5 * np.sin(2 * np.pi * (hour - 9) / 24)
        + np.array([0, -8, 10, 3])[b_zone[bid]] + rng.normal(0, 2, len(ts)))
peak = np.array([13, 11, 16, 21, 12, 15])[b_use[bid]]
amp = np.array([0.9, 1.0, 0.8, 0.5, 0.15, 0.4])[b_use[bid]]
weekend = np.array([0.5, 0.2, 1.2, 1.1, 1.0, 0.8])[b_use[bid]]
sens = np.array([0.02, 0.015, 0.025, 0.03, 0.01, 0.035])[b_use[bid]]
log_kwh = (0.9 * np.log(b_area[bid]) - 4.5 + b_quirk[bid]
           + amp * np.cos(2 * np.pi * (hour - peak) / 24)
           + np.where(dow >= 5, np.log(weekend), 0.0)
           + sens * np.abs(temp - 18) + 0.004 * (2000 - b_year[bid])
           + rng.normal(0, 0.12, len(ts)))
kwh = np.exp(log_kwh)

table = {
    "building": np.array([f"B{b:03d}" for b in bid]),
    "use": USES[b_use[bid]],
    "zone": ZONES[b_zone[bid]],
    "area": b_area[bid],
    "year": b_year[bid].astype(float),
    "temp": temp,
    "hour": hour, "dow": dow,
    "kwh": kwh,
}

# ------------------------------------------------------------------ split by time
cut = int(0.8 * len(ts))
train = {k: v[:cut] for k, v in table.items()}
valid = {k: v[cut:] for k, v in table.items()}
print(f"train rows {cut}  valid rows {len(ts) - cut}")

# ------------------------------------------------------------------ features
CATS = ["building", "use", "zone"]


def encode_cats(df, levels):
    cols = []
    for c in CATS:
        pos = np.searchsorted(levels[c], df[c])
        pos = np.clip(pos, 0, len(levels[c]) - 1)
        known = levels[c][pos] == df[c]
        cols.append(np.where(known, pos + 1, 0))
    return np.stack(cols, 1)


def numeric(df):
    return np.stack([
        np.log(df["area"]), df["year"], df["temp"], np.abs(df["temp"] - 18),
        np.sin(2 * np.pi * df["hour"] / 24), np.cos(2 * np.pi * df["hour"] / 24),
        (df["dow"] >= 5).astype(float),
    ], 1)


levels = {c: np.unique(train[c]) for c in CATS}
xc_tr = torch.tensor(encode_cats(train, levels))
xc_va = torch.tensor(encode_cats(valid, levels))

n_tr, n_va = numeric(train), numeric(valid)
mu, sd = n_tr.mean(0), n_tr.std(0)
xn_tr = torch.tensor((n_tr - mu) / sd, dtype=torch.float32)
xn_va = torch.tensor((n_va - mu) / sd, dtype=torch.float32)

y_tr = torch.tensor(np.log1p(train["kwh"]), dtype=torch.float32)
y_va = torch.tensor(np.log1p(valid["kwh"]), dtype=torch.float32)
y_mean, y_std = y_tr.mean(), y_tr.std()


# ------------------------------------------------------------------ model
class EnergyNet(nn.Module):
    def __init__(self, cards, n_num):
        super().__init__()
        self.embs = nn.ModuleList([nn.Embedding(c + 1, min(12, c)) for c in cards])
        for e in self.embs:
            nn.init.normal_(e.weight, std=0.1)
        d = n_num + sum(e.embedding_dim for e in self.embs)
        self.body = nn.Sequential(
            nn.Linear(d, 160), nn.ReLU(), nn.Dropout(0.05),
            nn.Linear(160, 96), nn.ReLU(),
        )
        self.out = nn.Linear(96, 1)

    def forward(self, xn, xc):
        z = [e(xc[:, j]) for j, e in enumerate(self.embs)]
        h = self.body(torch.cat([xn] + z, dim=1))
        return self.out(h).squeeze(1)


model = EnergyNet([len(levels[c]) for c in CATS], xn_tr.shape[1])
opt = torch.optim.AdamW(model.parameters(), lr=LR, weight_decay=1e-3)
sched = torch.optim.lr_scheduler.ExponentialLR(opt, gamma=0.8)
crit = nn.SmoothL1Loss()


def run_valid():
    model.eval()
    with torch.no_grad():
        p = model(xn_va, xc_va).reshape(-1)
        loss = crit(p, (y_va - y_mean) / y_std).item()
    pred = p * y_std + y_mean
    rmsle = (pred - y_va).pow(2).mean().sqrt().item()
    r2 = 1 - ((pred - y_va).pow(2).sum() / (y_va - y_va.mean()).pow(2).sum()).item()
    return loss, rmsle, r2


for epoch in range(EPOCHS):
    model.train()
    order = torch.randperm(len(y_tr))
    tot, seen = 0.0, 0
    for i in range(0, len(order), BATCH):
        idx = order[i:i + BATCH]
        xb_n = xn_tr[idx]
        xb_c = xc_tr[idx]
        yb = (y_tr[idx] - y_mean) / y_std
        opt.zero_grad()
        loss = crit(model(xb_n, xb_c), yb)
        loss.backward()
        opt.step()
        tot += loss.item() * len(idx)
        seen += len(idx)
    sched.step()
    vl, rmsle, r2 = run_valid()
    print(f"epoch {epoch + 1:02d}  train {tot / seen:.4f}  valid {vl:.4f}  rmsle {rmsle:.4f}  r2 {r2:.4f}")

print(f"final valid rmsle {rmsle:.4f}  r2 {r2:.4f}")
