# DeepSurv-style Cox model on clinical records with pandas preprocessing.
# patients.csv: patient_id, centre, visit_date, age, sex, stage, bmi, crp, albumin, treatment, months, died
import numpy as np
import pandas as pd
import torch
import torch.nn as nn

torch.manual_seed(17)

NUMERIC = ["age", "bmi", "log_crp", "albumin"]
CATEGORICAL = ["sex", "stage", "treatment"]

# ---------------------------------------------------------------- data
df = pd.read_csv("patients.csv", parse_dates=["visit_date"])
df = df.sort_values("visit_date").drop_duplicates("patient_id", keep="first")
df = df[df["months"] > 0].reset_index(drop=True)
df["log_crp"] = np.log1p(df["crp"])

# the newest quarter of the patients is held out; the third quarter of time is for validation
n = len(df)
train_df = df.iloc[: n // 2].copy()
valid_df = df.iloc[n // 2: 3 * n // 4].copy()
test_df = df.iloc[3 * n // 4:].copy()

fill = train_df[NUMERIC].median()
mean = train_df[NUMERIC].fillna(fill).mean()
std = train_df[NUMERIC].fillna(fill).std()
levels = {c: sorted(train_df[c].dropna().astype(str).unique()) for c in CATEGORICAL}


def design(frame):
    parts = [((frame[NUMERIC].fillna(fill) - mean) / std).to_numpy()]
    for c in CATEGORICAL:
        text = frame[c].astype(str)
        parts.append(np.stack([(text == v).to_numpy() for v in levels[c]], axis=1))
    x = torch.tensor(np.concatenate(parts, axis=1).astype(np.float32))
    t = torch.tensor(frame["months"].to_numpy(), dtype=torch.float32)
    e = torch.tensor(frame["died"].to_numpy(), dtype=torch.float32)
    return x, t, e


x_tr, t_tr, e_tr = design(train_df)
x_va, t_va, e_va = design(valid_df)
x_te, t_te, e_te = design(test_df)


# ---------------------------------------------------------------- model and loss
class RiskNet(nn.Module):
    def __init__(self, d_in):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(d_in, 64), nn.SELU(), nn.AlphaDropout(0.1),
            nn.Linear(64, 32), nn.SELU(), nn.AlphaDropout(0.1),
        )
        self.risk = nn.Linear(32, 1, bias=False)
        for m in self.modules():
            if isinstance(m, nn.Linear):
                nn.init.normal_(m.weight, std=m.in_features ** -0.5)

    def forward(self, x):
        return self.risk(self.body(x)).squeeze(-1)


def cox_loss(risk, time, event):
    """Negative log partial likelihood (Breslow) per event; the risk set of i is everybody with time >= time_i."""
    order = torch.argsort(time, descending=True)
    risk, time, event = risk[order], time[order], event[order]
    log_cum = torch.logcumsumexp(risk, dim=0)
    # tied times share the risk set of the last row of the tie
    last = torch.searchsorted(-time, -time, right=True) - 1
    return -((risk - log_cum[last]) * event).sum() / event.sum().clamp(min=1)


def concordance(risk, time, event):
    """Harrell's C: pairs (i, j) with time_i < time_j and an event at i are comparable."""
    comparable = (time.unsqueeze(1) < time.unsqueeze(0)) & (event.unsqueeze(1) == 1)
    diff = risk.unsqueeze(1) - risk.unsqueeze(0)
    good = (diff > 0).float() + 0.5 * (diff == 0).float()
    return (good[comparable].sum() / comparable.sum()).item()


# ---------------------------------------------------------------- training
model = RiskNet(x_tr.size(1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-2)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=150)
swa = torch.optim.swa_utils.AveragedModel(model)
batch_size, epochs, swa_start = 256, 150, 100
best_c, best_epoch = 0.0, -1

for epoch in range(epochs):
    model.train()
    total, batches = 0.0, 0
    for rows in torch.randperm(len(x_tr)).split(batch_size):
        if e_tr[rows].sum() == 0:
            continue
        loss = cox_loss(model(x_tr[rows]), t_tr[rows], e_tr[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
        batches += 1
    scheduler.step()
    if epoch >= swa_start:
        swa.update_parameters(model)

    model.eval()
    with torch.no_grad():
        c_valid = concordance(model(x_va), t_va, e_va)
    if epoch % 5 == 0:
        print(f"{epoch:3d} loss {total / batches:.4f} valid C {c_valid:.4f}")
    if c_valid > best_c:
        best_c, best_epoch = c_valid, epoch
        torch.save({"state": model.state_dict(), "epoch": epoch, "mean": mean, "std": std,
                    "fill": fill, "levels": levels}, "cox_best.pt")

# ---------------------------------------------------------------- test: single best model against the average
model.load_state_dict(torch.load("cox_best.pt", weights_only=False)["state"])
model.eval()
swa.eval()
with torch.no_grad():
    c_swa_valid = concordance(swa(x_va), t_va, e_va)
    final = swa if c_swa_valid > best_c else model
    c_test = concordance(final(x_te), t_te, e_te)
print(f"best epoch {best_epoch} C {best_c:.4f}, averaged C {c_swa_valid:.4f}, test C {c_test:.4f}")
