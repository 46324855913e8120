"""Click-through prediction from an impression log.

Categorical fields are hashed into small tables and embedded, numeric fields are
standardised, and both go into a small MLP. The first days of the log only serve
to count past clicks per ad; then come training, validation and test days.
"""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.metrics import roc_auc_score

FIELDS = ["user", "ad", "site", "device"]
BUCKETS = {"user": 4096, "ad": 4096, "site": 256, "device": 32}
NUMERIC = ["price", "ad_age", "hour_sin", "hour_cos", "past_ctr"]
HISTORY_DAYS, TRAIN_DAYS, VAL_DAYS, TEST_DAYS = 7, 12, 2, 3
KEEP_NEGATIVES = 0.25


def simulate_log(n_rows=520_000, n_users=3000, n_ads=2500, n_sites=120, seed=5):
    rng = np.random.default_rng(seed)
    days = HISTORY_DAYS + TRAIN_DAYS + VAL_DAYS + TEST_DAYS
    day = np.sort(rng.integers(0, days, n_rows))
    popularity = 1.0 / np.arange(1, n_ads + 1) ** 0.6
    log = {
        "day": day,
        "user": rng.integers(0, n_users, n_rows),
        "ad": rng.choice(n_ads, n_rows, p=popularity / popularity.sum()),
        "site": rng.integers(0, n_sites, n_rows),
        "device": rng.integers(0, 9, n_rows),
        "price": rng.lognormal(3.0, 1.0, n_rows),
        "hour": rng.integers(0, 24, n_rows),
    }
    log["ad_age"] = np.maximum(day - rng.integers(-20, 10, n_ads)[log["ad"]], 0).astype(float)
    k = 4
    user_taste, ad_theme = rng.normal(0, 0.45, (n_users, k)), rng.normal(0, 0.45, (n_ads, k))
    site_theme = rng.normal(0, 0.5, (n_sites, k))
    logit = (-3.1 + rng.normal(0, 0.7, n_users)[log["user"]] + rng.normal(0, 0.7, n_ads)[log["ad"]]
             + rng.normal(0, 0.3, n_sites)[log["site"]] + rng.normal(0, 0.4, 9)[log["device"]]
             + (user_taste[log["user"]] * ad_theme[log["ad"]]).sum(1)
             + (site_theme[log["site"]] * ad_theme[log["ad"]]).sum(1)
             - 0.35 * (np.log(log["price"]) - 3.0) - 0.03 * log["ad_age"]
             + 0.4 * np.sin(2 * np.pi * (log["hour"] - 14) / 24))
    log["click"] = (rng.random(n_rows) < 1 / (1 + np.exp(-logit))).astype(np.float32)
    return log


def hash_field(name, values):
    salt = sum(ord(c) * 131 ** i for i, c in enumerate(name)) & 0xFFFFFFFF
    mixed = (values.astype(np.uint64) + np.uint64(salt)) * np.uint64(0x9E3779B97F4A7C15)
    return ((mixed >> np.uint64(33)) % np.uint64(BUCKETS[name])).astype(np.int64)


def past_ctr(log, prior=20.0):
    """Smoothed click rate of every ad, as known when the training days begin."""
    known = log["day"] < HISTORY_DAYS
    n_ads = log["ad"].max() + 1
    shown = np.bincount(log["ad"][known], minlength=n_ads)
    clicked = np.bincount(log["ad"][known], weights=log["click"][known], minlength=n_ads)
    mean = log["click"][known].mean()
    return ((clicked + prior * mean) / (shown + prior))[log["ad"]]


def build_features(log):
    cats = np.stack([hash_field(f, log[f]) for f in FIELDS], axis=1)
    angle = 2 * np.pi * log["hour"] / 24
    nums = np.stack([np.log1p(log["price"]), np.log1p(log["ad_age"]), np.sin(angle), np.cos(angle),
                     np.log(past_ctr(log))], axis=1)
    return cats, nums


class ClickModel(nn.Module):
    def __init__(self, dim=8, hidden=64, dropout=0.2):
        super().__init__()
        self.tables = nn.ModuleList([nn.Embedding(BUCKETS[f], dim) for f in FIELDS])
        self.bias = nn.ModuleList([nn.Embedding(BUCKETS[f], 1) for f in FIELDS])
        for table in self.tables:
            nn.init.normal_(table.weight, std=0.05)
        for table in self.bias:
            nn.init.zeros_(table.weight)
        self.mlp = nn.Sequential(
            nn.Linear(len(FIELDS) * dim + len(NUMERIC), hidden), nn.ReLU(), nn.Dropout(dropout),
            nn.Linear(hidden, hidden // 2), nn.ReLU(), nn.Linear(hidden // 2, 1))

    def forward(self, cats, nums):
        parts = [t(cats[:, i]) for i, t in enumerate(self.tables)]
        wide = sum(t(cats[:, i]) for i, t in enumerate(self.bias))
        pairs = sum((parts[i] * parts[j]).sum(1) for i in range(len(parts)) for j in range(i))
        deep = self.mlp(torch.cat(parts + [nums], dim=1)).squeeze(1)
        return deep + wide.squeeze(1) + pairs


class Trainer:
    def __init__(self, model, lr=1e-3, batch=512, epochs=5, seed=0):
        self.model, self.batch, self.epochs = model, batch, epochs
        self.rng = np.random.default_rng(seed)
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=0.05)
        self.schedule = torch.optim.lr_scheduler.LambdaLR(
            self.optimizer, lambda e: max(0.05, 1 - e / self.epochs))
        self.shift = float(np.log(KEEP_NEGATIVES))

    def fit_epoch(self, cats, nums, clicks):
        self.model.train()
        order = torch.from_numpy(self.rng.permutation(len(clicks)))
        losses = []
        for start in range(0, len(order), self.batch):
            rows = order[start:start + self.batch]
            loss = F.binary_cross_entropy_with_logits(self.model(cats[rows], nums[rows]), clicks[rows])
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()
            losses.append(loss.item())
        self.schedule.step()
        return float(np.mean(losses))

    @torch.no_grad()
    def predict(self, cats, nums):
        """Click probability per impression of the full log (negatives thinned in training)."""
        self.model.eval()
        logits = [self.model(c, x) for c, x in zip(cats.split(8192), nums.split(8192))]
        return torch.sigmoid(torch.cat(logits) + self.shift)

    def score(self, cats, nums, clicks):
        p = self.predict(cats, nums).clamp(1e-6, 1 - 1e-6)
        return {"logloss": F.binary_cross_entropy(p, clicks).item(),
                "auc": roc_auc_score(clicks.numpy(), p.numpy()),
                "predicted/actual": (p.sum() / clicks.sum()).item()}


def show(scores):
    return " ".join(f"{k} {v:.4f}" for k, v in scores.items())


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    log = simulate_log()
    cats, nums = build_features(log)
    edges = np.cumsum([HISTORY_DAYS, TRAIN_DAYS, VAL_DAYS, TEST_DAYS])
    train, val, test = (np.flatnonzero((log["day"] >= a) & (log["day"] < b))
                        for a, b in zip(edges[:-1], edges[1:]))

    # all clicks, and a quarter of the impressions without one
    rng = np.random.default_rng(1)
    positive = train[log["click"][train] == 1]
    negative = train[log["click"][train] == 0]
    negative = negative[rng.random(len(negative)) < KEEP_NEGATIVES]
    kept = np.concatenate([positive, negative])

    mean, std = nums[kept].mean(0), nums[kept].std(0)
    nums = (nums - mean) / std

    def tensors(rows):
        return (torch.from_numpy(cats[rows]), torch.from_numpy(nums[rows]).float(),
                torch.from_numpy(log["click"][rows]))

    fit, val, test = tensors(kept), tensors(val), tensors(test)
    base_rate = val[2].mean()
    entropy = -(base_rate * base_rate.log() + (1 - base_rate) * (1 - base_rate).log()).item()
    print(f"rows {len(kept)} (clicks {len(positive)}), val {len(val[2])}, test {len(test[2])}; "
          f"click rate {base_rate:.4f}, logloss of the rate alone {entropy:.4f}")

    trainer = Trainer(ClickModel())
    best, state = float("inf"), None
    for epoch in range(1, trainer.epochs + 1):
        loss = trainer.fit_epoch(*fit)
        scores = trainer.score(*val)
        print(f"epoch {epoch} train loss {loss:.4f} | val {show(scores)}")
        if scores["logloss"] < best:
            best = scores["logloss"]
            state = {k: v.clone() for k, v in trainer.model.state_dict().items()}
    trainer.model.load_state_dict(state)
    print(f"test {show(trainer.score(*test))}")


if __name__ == "__main__":
    main()
