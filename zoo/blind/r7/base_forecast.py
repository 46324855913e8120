"""Demand forecasting for many shops: 42 past days in, 14 days ahead out, promotions known in advance."""
import copy
import math
import numpy as np
import torch
import torch.nn as nn

torch.manual_seed(8)
torch.set_num_threads(1)

SHOPS, DAYS, PAST, AHEAD = 24, 420, 42, 14
EPOCHS, BATCH = 12, 128
rng = np.random.RandomState(17)


def simulate():
    """Weekly pattern, slow drift, promotions that lift sales, autocorrelated noise. One scale per shop."""
    days = np.arange(DAYS)
    sales, promo = np.zeros((SHOPS, DAYS), np.float32), np.zeros((SHOPS, DAYS), np.float32)
    for s in range(SHOPS):
        level = math.exp(rng.uniform(3.0, 6.5))
        week = rng.uniform(0.6, 1.5, size=7)
        drift = 0.2 * np.sin(2 * np.pi * (days / rng.uniform(120, 200) + rng.rand()))
        start = np.flatnonzero(rng.rand(DAYS) < 0.06)
        for d in start:
            promo[s, d:d + 3] = 1.0
        noise = np.zeros(DAYS)
        for d in range(1, DAYS):
            noise[d] = 0.7 * noise[d - 1] + 0.04 * rng.randn()
        sales[s] = level * (week[days % 7] * (1 + drift) + 0.7 * promo[s] + noise)
    return sales, promo


sales, promo = simulate()
VAL_FROM, TEST_FROM = 300, 360
mu = sales[:, :VAL_FROM].mean(1)
sd = sales[:, :VAL_FROM].std(1)
scaled = (sales - mu[:, None]) / sd[:, None]
weekday = np.eye(7, dtype=np.float32)[np.arange(DAYS) % 7]


def lagged(x, k=14):
    """sales of the same weekday k days earlier"""
    out = np.roll(x, k)
    out[:k] = x[:k]
    return out


earlier = np.stack([lagged(row) for row in scaled])


def windows(first, last):
    """All windows whose forecast days lie in [first, last)."""
    past, future, target, shop = [], [], [], []
    for s in range(SHOPS):
        for t in range(first, last - AHEAD + 1, 3):
            hist = slice(t - PAST, t)
            nxt = slice(t, t + AHEAD)
            past.append(np.stack([scaled[s, hist], earlier[s, hist], promo[s, hist]], axis=-1))
            future.append(np.concatenate([promo[s, nxt, None], weekday[nxt]], axis=-1))
            target.append(scaled[s, nxt])
            shop.append(s)
    return (torch.tensor(np.stack(past)).float(), torch.tensor(np.stack(future)).float(),
            torch.tensor(np.stack(target)).float(), torch.tensor(shop))


train = windows(PAST, VAL_FROM)
val = windows(VAL_FROM, TEST_FROM)
test = windows(TEST_FROM, DAYS)
mu_t, sd_t = torch.tensor(mu), torch.tensor(sd)


class Forecaster(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.past = nn.Sequential(nn.Flatten(), nn.Linear(PAST * 3, width), nn.ReLU(), nn.Linear(width, 48))
        self.shop = nn.Embedding(SHOPS, 8)
        self.day = nn.Embedding(AHEAD, 8)
        self.linear = nn.Linear(PAST * 3, AHEAD)        # autoregressive shortcut
        self.head = nn.Sequential(nn.Linear(48 + 8 + 8 + 8, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, past, future, shop):
        ctx = torch.cat([self.past(past), self.shop(shop)], dim=-1)
        ctx = ctx[:, None].expand(-1, AHEAD, -1)
        day = self.day.weight[None].expand(len(past), -1, -1)
        return self.head(torch.cat([ctx, day, future], dim=-1)).squeeze(-1) + self.linear(past.flatten(1))


@torch.no_grad()
def evaluate(model, split):
    """loss in scaled units, weighted absolute percentage error in sold units"""
    model.eval()
    past, future, target, shop = split
    pred = model(past, future, shop)
    loss = nn.functional.huber_loss(pred, target).item()
    scale, shift = sd_t[shop][:, None], mu_t[shop][:, None]
    pred_units = pred * scale + shift
    true_units = target * sd_t[shop].unsqueeze(1) + mu_t[shop].unsqueeze(1)
    wape = (pred_units - true_units).abs().sum() / true_units.abs().sum()
    return loss, wape.item()


def seasonal_naive(split):
    past, _, target, shop = split
    last_week = past[:, -7:, 0].repeat(1, 2)
    err = (last_week - target).abs() * sd_t[shop][:, None]
    return (err.sum() / (target * sd_t[shop][:, None] + mu_t[shop][:, None]).abs().sum()).item()


model = Forecaster()
opt = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-3)
sched = torch.optim.lr_scheduler.StepLR(opt, step_size=4, gamma=0.3)
print(f"seasonal naive: val wape {seasonal_naive(val):.4f} test wape {seasonal_naive(test):.4f}")

best, best_state = float("inf"), None
for epoch in range(EPOCHS):
    model.train()
    perm = torch.randperm(len(train[0]))
    total, batches = 0.0, 0
    for i in range(0, len(perm), BATCH):
        past, future, target, shop = [part[perm[i:i + BATCH]] for part in train]
        loss = nn.functional.huber_loss(model(past, future, shop), target)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        total += loss.item()
        batches += 1
    sched.step()
    val_loss, val_wape = evaluate(model, val)
    if val_loss < best:
        best, best_state = val_loss, copy.deepcopy(model.state_dict())
    print(f"epoch {epoch:2d} lr {opt.param_groups[0]['lr']:.1e} train {total / batches:.4f} "
          f"val {val_loss:.4f} val wape {val_wape:.4f}")

model.load_state_dict(best_state)
test_loss, test_wape = evaluate(model, test)
print(f"test loss {test_loss:.4f} wape {test_wape:.4f} seasonal naive {seasonal_naive(test):.4f}")
