"""Churn model for a phone company: numeric columns with gaps, categories, and a dealer rate."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score

torch.set_num_threads(1)
SEED = 7
N, DEALERS = 12000, 2500
REGIONS = ["north", "south", "east", "west", "coast", "lakes", "hills", "metro", "border", "islands", "valley", "plain"]
PLANS = ["basic", "plus", "family", "business", "student"]


def load_customers(n, seed=1):
    world = np.random.default_rng(99)
    dealer_fx = world.normal(0, 0.45, DEALERS)
    region_fx = world.normal(0, 0.9, len(REGIONS))
    plan_fx = world.normal(0, 0.6, len(PLANS))
    rng = np.random.default_rng(seed)
    tenure = rng.gamma(3.0, 14.0, n)
    bill = rng.normal(72, 16, n)
    calls = rng.poisson(2.0, n).astype(float)
    usage = rng.gamma(4.0, 6.0, n)
    score = rng.normal(640, 45, n)
    age = rng.uniform(18, 80, n)
    region = rng.integers(0, len(REGIONS), n)
    plan = rng.integers(0, len(PLANS), n)
    dealer = rng.integers(0, DEALERS, n)
    z = (-2.0 - 0.035 * (tenure - 42) + 0.03 * (bill - 72) + 0.35 * (calls - 2) - 0.02 * (score - 640)
         - 0.6 * np.tanh((usage - 24) / 8) + 0.8 * ((calls > 3) & (tenure < 30))
         + region_fx[region] * (1 + 0.6 * (plan == 2)) + plan_fx[plan] + dealer_fx[dealer])
    y = (rng.random(n) < 1 / (1 + np.exp(-z))).astype(np.float32)
    num = np.stack([tenure, bill, calls, usage, score, age], 1)
    for col, rate in ((1, 0.12), (3, 0.18), (4, 0.22)):
        num[rng.random(n) < rate, col] = np.nan
    return num, np.array(REGIONS)[region], np.array(PLANS)[plan], dealer, y


def factorize(values):
    levels = list(dict.fromkeys(values.tolist()))
    return np.array([levels.index(v) for v in values]), levels


def lookup(levels, values):
    return np.array([levels.index(v) for v in values])


def rates(keys, y, query, strength=3.0):
    total = np.bincount(keys, weights=y, minlength=DEALERS)
    count = np.bincount(keys, minlength=DEALERS)
    return ((total + strength * y.mean()) / (count + strength))[query]


def fold_rates(keys, y, folds, rng):
    fold = rng.integers(0, folds, len(keys))
    out = np.zeros(len(keys))
    for f in range(folds):
        rest = fold != f
        out[fold == f] = rates(keys[rest], y[rest], keys[fold == f])
    return out


class ChurnNet(nn.Module):
    def __init__(self, n_num):
        super().__init__()
        self.region = nn.Embedding(len(REGIONS), 6)
        self.plan = nn.Embedding(len(PLANS), 3)
        self.body = nn.Sequential(nn.Linear(n_num + 9, 64), nn.ReLU(), nn.Dropout(0.2),
                                  nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, num, region, plan):
        return self.body(torch.cat([num, self.region(region), self.plan(plan)], 1)).squeeze(1)


def main():
    torch.manual_seed(SEED)
    rng = np.random.default_rng(SEED)
    num, region, plan, dealer, y = load_customers(N)
    order = rng.permutation(N)
    tr, va = order[:9000], order[9000:]

    enc_tr = fold_rates(dealer[tr], y[tr], 5, rng)
    enc_va = rates(dealer[tr], y[tr], dealer[va])

    med = np.nanmedian(num[tr], axis=0)
    num_tr = np.where(np.isnan(num[tr]), med, num[tr])
    num_va = np.where(np.isnan(num[va]), med, num[va])
    mu, sd = num_tr.mean(0), num_tr.std(0)
    num_tr, num_va = (num_tr - mu) / sd, (num_va - mu) / sd
    e_mu, e_sd = enc_tr.mean(), enc_tr.std()
    x_tr = np.column_stack([num_tr, (enc_tr - e_mu) / e_sd]).astype(np.float32)
    x_va = np.column_stack([num_va, (enc_va - e_mu) / e_sd]).astype(np.float32)

    region_tr, region_levels = factorize(region[tr])
    region_va = lookup(region_levels, region[va])
    plan_tr, plan_levels = factorize(plan[tr])
    plan_va = lookup(plan_levels, plan[va])

    def pack(x, r, p, t):
        return TensorDataset(torch.from_numpy(x), torch.from_numpy(r), torch.from_numpy(p), torch.from_numpy(t))

    train_set, val_set = pack(x_tr, region_tr, plan_tr, y[tr]), pack(x_va, region_va, plan_va, y[va])
    train_dl = DataLoader(train_set, batch_size=128, shuffle=True)
    val_dl = DataLoader(val_set, batch_size=512)

    model = ChurnNet(x_tr.shape[1])
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-3)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=9)
    loss_fn = nn.BCEWithLogitsLoss()
    print(f"{len(tr)} train, {len(va)} validation, churn rate {y[tr].mean():.3f}")
    for epoch in range(9):
        model.train()
        total = 0.0
        for xb, rb, pb, yb in train_dl:
            opt.zero_grad()
            loss = loss_fn(model(xb, rb, pb), yb)
            loss.backward()
            opt.step()
            total += loss.item() * len(yb)
        sched.step()
        model.eval()
        with torch.no_grad():
            prob = torch.cat([torch.sigmoid(model(xb, rb, pb)) for xb, rb, pb, _ in val_dl]).numpy()
        print(f"epoch {epoch + 1:2d}  train loss {total / len(train_set):.4f}  val loss {log_loss(y[va], prob):.4f}  "
              f"val auc {roc_auc_score(y[va], prob):.4f}")
    print(f"brier {brier_score_loss(y[va], prob):.4f}")
    print(f"expected churners {prob.sum():.0f}, observed {y[va].sum():.0f}")
    print(f"retention budget at 40 per expected churner: {40 * prob.sum():.0f}")


main()
