"""Price model for housing listings: numeric columns + categorical embeddings.

Rows before 2019 are used for training, 2019 is the validation year,
2020 and 2021 are held out for the final test.
"""
import copy

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
SEED = 3
EPOCHS = 30
BATCH = 128
LR = 2e-3

torch.manual_seed(SEED)
rng = np.random.default_rng(SEED)

NUMERIC = ["area", "rooms", "age", "dist_km", "income"]
CATEG = ["district", "kind"]


def make_listings(n):
    year = rng.integers(2010, 2022, n)
    area = np.exp(rng.normal(4.4, 0.35, n))
    rooms = np.clip(np.round(area / 28 + rng.normal(0, 0.8, n)), 1, 9)
    age = rng.uniform(0, 90, n)
    dist = rng.exponential(7.0, n)
    income = rng.normal(41000, 9000, n)
    # a few districts are rare
    p = 1.0 / np.arange(1, 121) ** 1.0
    district_names = np.array(["D%03d" % v for v in rng.permutation(900)[:120]])
    d = rng.choice(120, n, p=p / p.sum())
    kinds = np.array(["flat", "house", "loft", "studio", "villa"])
    k = rng.choice(5, n, p=[0.5, 0.25, 0.1, 0.1, 0.05])
    d_eff = rng.normal(0, 60, 120)
    k_eff = np.array([0.0, 25.0, 15.0, -20.0, 90.0])
    price = (
        60
        + 2.1 * area * (1 + 0.25 * (k == 4))
        - 35 * np.log1p(dist)
        + 25 * np.cos(age / 14)
        + 2.2 * (income - 41000) / 1000
        + d_eff[d]
        + k_eff[k]
        + rng.normal(0, 14, n)
    )
    return {
        "year": year, "area": area, "rooms": rooms, "age": age, "dist_km": dist,
        "income": income, "district": district_names[d], "kind": kinds[k], "price": price,
    }


def select(table, rows):
    return {c: v[rows] for c, v in table.items()}


listings = make_listings(7000)
train = select(listings, listings["year"] < 2019)
val = select(listings, listings["year"] == 2019)
test = select(listings, listings["year"] > 2019)

num_mean = np.array([train[c].mean() for c in NUMERIC])
num_std = np.array([train[c].std() for c in NUMERIC])
y_mean, y_std = train["price"].mean(), train["price"].std()
vocab = {c: {v: i + 1 for i, v in enumerate(sorted(set(train[c])))} for c in CATEG}


def encode(table):
    num = np.stack([table[c] for c in NUMERIC], 1)
    num = (num - num_mean) / num_std
    codes = vocab
    cat = np.stack([[codes[c].get(v, 0) for v in table[c]] for c in CATEG], 1)
    y = (table["price"] - y_mean) / y_std
    return TensorDataset(
        torch.tensor(num, dtype=torch.float32),
        torch.tensor(cat, dtype=torch.long),
        torch.tensor(y, dtype=torch.float32),
    )


train_dl = DataLoader(encode(train), batch_size=BATCH, shuffle=True)
val_dl = DataLoader(encode(val), batch_size=512)
test_dl = DataLoader(encode(test), batch_size=512)


class PriceNet(nn.Module):
    def __init__(self, n_num, cards, emb=8, hidden=64):
        super().__init__()
        self.embs = nn.ModuleList([nn.Embedding(c + 1, emb) for c in cards])
        self.mlp = nn.Sequential(
            nn.Linear(n_num + emb * len(cards), hidden), nn.ReLU(),
            nn.Linear(hidden, hidden), nn.ReLU(),
            nn.Linear(hidden, 1),
        )

    def forward(self, num, cat):
        e = [emb(cat[:, i]) for i, emb in enumerate(self.embs)]
        return self.mlp(torch.cat([num] + e, 1)).squeeze(1)


model = PriceNet(len(NUMERIC), [len(vocab[c]) for c in CATEG])
optimizer = torch.optim.AdamW(model.parameters(), lr=LR, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
criterion = nn.MSELoss()


@torch.no_grad()
def predict(loader):
    model.eval()
    pred = torch.cat([model(n, c) for n, c, _ in loader])
    true = torch.cat([t for _, _, t in loader])
    pred = pred.reshape(-1).numpy() * y_std + y_mean
    true = true.numpy() * y_std + y_mean
    rmse = float(np.sqrt(((pred - true) ** 2).mean()))
    r2 = float(1 - ((pred - true) ** 2).sum() / ((true - true.mean()) ** 2).sum())
    return rmse, r2


best_rmse, best_state = None, None
for epoch in range(EPOCHS):
    model.train()
    total, seen = 0.0, 0
    for num, cat, y in train_dl:
        optimizer.zero_grad()
        loss = criterion(model(num, cat), y)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(y)
        seen += len(y)
    scheduler.step()
    val_rmse, val_r2 = predict(val_dl)
    if best_rmse is None or val_rmse < best_rmse:
        best_rmse, best_state = val_rmse, copy.deepcopy(model.state_dict())
    print(f"epoch {epoch:2d}  train mse {total / seen:.4f}  val rmse {val_rmse:.1f}k  val R2 {val_r2:.3f}")

model.load_state_dict(best_state)
rmse, r2 = predict(test_dl)
print(f"test rmse {rmse:.1f}k  test R2 {r2:.3f}")
