"""DeepSurv-style Cox model on a breast cancer cohort (several samples per patient are possible)."""
import copy
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
import torch.nn as nn
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GroupShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

ID, TIME, STATUS = "patient_id", "months", "status"


@dataclass
class Params:
    csv: str = "cohort.csv"
    hidden: int = 64
    dropout: float = 0.3
    lr: float = 1e-3
    weight_decay: float = 1e-3
    batch_size: int = 256
    epochs: int = 200
    patience: int = 20
    seed: int = 11


def load(p):
    df = pd.read_csv(p.csv)
    df = df[df[TIME] > 0].reset_index(drop=True)
    event = (df[STATUS] == "deceased").to_numpy(dtype=np.float32)
    time = df[TIME].to_numpy(dtype=np.float32)
    x = pd.get_dummies(df.drop(columns=[ID, TIME, STATUS]), dtype=float).to_numpy(dtype=np.float32)
    groups = df[ID].to_numpy()

    outer = GroupShuffleSplit(n_splits=1, test_size=0.2, random_state=p.seed)
    rest, test = next(outer.split(x, groups=groups))
    inner = GroupShuffleSplit(n_splits=1, test_size=0.2, random_state=p.seed)
    a, b = next(inner.split(x[rest], groups=groups[rest]))
    train, val = rest[a], rest[b]

    prep = make_pipeline(SimpleImputer(strategy="median"), StandardScaler()).fit(x[train])
    return {name: (torch.tensor(prep.transform(x[idx]), dtype=torch.float32),
                   torch.tensor(time[idx]), torch.tensor(event[idx]))
            for name, idx in (("train", train), ("val", val), ("test", test))}


class RiskNet(nn.Module):
    def __init__(self, n_in, p):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(n_in, p.hidden), nn.BatchNorm1d(p.hidden), nn.ReLU(), nn.Dropout(p.dropout),
            nn.Linear(p.hidden, p.hidden), nn.BatchNorm1d(p.hidden), nn.ReLU(), nn.Dropout(p.dropout),
            nn.Linear(p.hidden, 1, bias=False),
        )

    def forward(self, x):
        return self.net(x).squeeze(1)


def cox_loss(risk, time, event):
    """Negative partial log likelihood; the risk set of a subject is everybody with a time at least as long."""
    order = torch.argsort(time, descending=True)
    risk, event = risk[order], event[order]
    log_risk_set = torch.logcumsumexp(risk, dim=0)
    return -((risk - log_risk_set) * event).sum() / event.sum().clamp(min=1)


def concordance(time, event, risk):
    concordant, pairs = 0.0, 0
    for i in np.flatnonzero(event):
        later = time > time[i]
        pairs += later.sum()
        concordant += (risk[i] > risk[later]).sum() + 0.5 * (risk[i] == risk[later]).sum()
    return concordant / max(pairs, 1)


@torch.no_grad()
def predict(model, x):
    model.eval()
    return model(x).numpy()


def breslow(time, event, risk):
    """Cumulative baseline hazard at the sorted event times."""
    times = np.unique(time[event == 1])
    hazard = [((time == t) & (event == 1)).sum() / np.exp(risk[time >= t]).sum() for t in times]
    return times, np.cumsum(hazard)


def survival_at(t, times, cum_hazard, risk):
    k = np.searchsorted(times, t, side="right") - 1
    base = cum_hazard[k] if k >= 0 else 0.0
    return np.exp(-base * np.exp(risk))


def main():
    p = Params()
    torch.manual_seed(p.seed)
    data = load(p)
    x, time, event = data["train"]
    model = RiskNet(x.size(1), p)
    optimizer = torch.optim.AdamW(model.parameters(), lr=p.lr, weight_decay=p.weight_decay)
    best, best_state, wait = 0.0, None, 0

    for epoch in range(p.epochs):
        model.train()
        losses = []
        for idx in torch.randperm(len(x)).split(p.batch_size):
            if len(idx) < 32:
                continue
            loss = cox_loss(model(x[idx]), time[idx], event[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        vx, vt, ve = data["val"]
        c = concordance(vt.numpy(), ve.numpy(), predict(model, vx))
        print(f"epoch {epoch} loss {np.mean(losses):.4f} val c-index {c:.4f}")
        if c > best:
            best, best_state, wait = c, copy.deepcopy(model.state_dict()), 0
        else:
            wait += 1
            if wait >= p.patience:
                break

    model.load_state_dict(best_state)
    times, cum_hazard = breslow(time.numpy(), event.numpy(), predict(model, x))
    tx, tt, te = data["test"]
    risk = predict(model, tx)
    s60 = survival_at(60, times, cum_hazard, risk)
    print(f"test c-index {concordance(tt.numpy(), te.numpy(), risk):.4f}  mean 5-year survival {s60.mean():.3f}")
    torch.save({"model": best_state, "times": times, "cum_hazard": cum_hazard}, "cox.pt")


if __name__ == "__main__":
    main()
