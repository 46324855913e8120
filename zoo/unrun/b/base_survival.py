"""DeepSurv: Cox partial likelihood with a neural risk score on METABRIC-like data."""
import logging

import numpy as np
import pandas as pd
import torch
from torch import nn

logging.basicConfig(level=logging.INFO, format="%(message)s")
log = logging.getLogger("deepsurv")

NUMERIC = ["age", "size", "nodes", "grade", "expr_mki67", "expr_egfr", "expr_pgr", "expr_erbb2"]
BINARY = ["hormone", "chemo", "radio", "er_positive"]


def split_patients(df, rng):
    """60/20/20, stratified by the event indicator."""
    parts = ([], [], [])
    for _, group in df.groupby("event"):
        idx = rng.permutation(group.index.to_numpy())
        a, b = int(0.6 * len(idx)), int(0.8 * len(idx))
        for part, piece in zip(parts, (idx[:a], idx[a:b], idx[b:])):
            part.append(piece)
    return [df.loc[np.concatenate(p)].reset_index(drop=True) for p in parts]


class Scaler:
    def fit(self, df):
        self.median = df[NUMERIC].median()
        filled = df[NUMERIC].fillna(self.median)
        self.mean, self.std = filled.mean(), filled.std() + 1e-8
        return self

    def transform(self, df):
        num = (df[NUMERIC].fillna(self.median) - self.mean) / self.std
        x = np.concatenate([num.to_numpy(), df[BINARY].to_numpy()], axis=1).astype(np.float32)
        time = df["months"].to_numpy(np.float32)
        event = df["event"].to_numpy(np.float32)
        return torch.from_numpy(x), torch.from_numpy(time), torch.from_numpy(event)


class RiskNet(nn.Module):
    def __init__(self, d, hidden=64, p=0.3):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(d, hidden), nn.BatchNorm1d(hidden), nn.SELU(), nn.Dropout(p),
            nn.Linear(hidden, hidden), nn.BatchNorm1d(hidden), nn.SELU(), nn.Dropout(p),
        )
        self.risk = nn.Linear(hidden, 1, bias=False)

    def forward(self, x):
        return self.risk(self.body(x)).squeeze(1)


def cox_loss(risk, time, event):
    """Negative Breslow partial log-likelihood per event; the risk set of i is every j with time_j >= time_i."""
    at_risk = time[None, :] >= time[:, None]
    log_denominator = torch.logsumexp(risk[None, :].masked_fill(~at_risk, float("-inf")), dim=1)
    return -((risk - log_denominator) * event).sum() / event.sum().clamp(min=1)


def concordance(risk, time, event):
    """Harrell's C: among pairs whose earlier time is an event, how often has the earlier one the higher risk."""
    earlier = (time[:, None] < time[None, :]) & (event[:, None] == 1)
    higher = (risk[:, None] > risk[None, :]).float()
    ties = (risk[:, None] == risk[None, :]).float()
    return ((higher + 0.5 * ties)[earlier].sum() / earlier.sum()).item()


def batches(n, size, generator):
    order = torch.randperm(n, generator=generator)
    for s in range(0, n - size + 1, size):
        yield order[s:s + size]


@torch.no_grad()
def assess(model, data):
    model.eval()
    x, time, event = data
    risk = model(x)
    return cox_loss(risk, time, event).item(), concordance(risk, time, event)


def run(path="metabric.csv", epochs=200, batch=256, lr=1e-3, patience=20, seed=17):
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    rng = np.random.default_rng(seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    df = pd.read_csv(path).drop_duplicates("patient_id")
    df = df[df["months"] > 0].reset_index(drop=True)
    train_df, val_df, test_df = split_patients(df, rng)
    scaler = Scaler().fit(train_df)
    train, val, test = ([t.to(device) for t in scaler.transform(d)] for d in (train_df, val_df, test_df))
    log.info("patients %d / %d / %d, events %.0f", len(train_df), len(val_df), len(test_df), train[2].sum().item())

    model = RiskNet(train[0].size(1)).to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=1e-2)
    best, wait = float("inf"), 0
    for epoch in range(epochs):
        model.train()
        losses = []
        for idx in batches(len(train_df), batch, generator):
            idx = idx.to(device)
            x, time, event = (t[idx] for t in train)
            loss = cox_loss(model(x), time, event)
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            opt.step()
            losses.append(loss.item())
        val_loss, val_c = assess(model, val)
        if epoch % 10 == 0:
            log.info("%3d train %.4f val %.4f C %.4f", epoch, np.mean(losses), val_loss, val_c)
        if val_loss < best:
            best, wait = val_loss, 0
            torch.save(model.state_dict(), "deepsurv.pt")
        else:
            wait += 1
            if wait >= patience:
                break

    model.load_state_dict(torch.load("deepsurv.pt", map_location=device))
    log.info("test loss %.4f C %.4f", *assess(model, test))


if __name__ == "__main__":
    run()
