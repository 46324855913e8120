# Flat prices from numeric and categorical columns. MLP with entity embeddings.
# Target is standardised for training; RMSE / MAE are reported in thousand EUR.
import numpy as np
import torch
import torch.nn as nn
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

torch.set_num_threads(1)
np.random.seed(3)
torch.manual_seed(3)

# ---------------------------------------------------------------- data
N = 9000
N_DISTRICT, N_TYPE, N_HEAT = 40, 5, 4


def load_table(n):
    area = np.random.gamma(9.0, 9.0, n) + 20
    rooms = np.clip(np.round(area / 26 + np.random.normal(0, 0.6, n)), 1, 8)
    age = np.random.uniform(0, 110, n)
    floor = np.random.randint(0, 9, n).astype(float)
    dist = np.random.exponential(4.0, n) + 0.2
    energy = np.clip(60 + age * 1.1 + np.random.normal(0, 25, n), 20, 300)
    numeric = np.stack([area, rooms, age, floor, dist, energy], axis=1)

    district = np.random.choice(N_DISTRICT, n, p=np.random.dirichlet(np.full(N_DISTRICT, 3.0)))
    kind = np.random.choice(N_TYPE, n, p=[0.45, 0.2, 0.2, 0.1, 0.05])
    heating = np.random.randint(0, N_HEAT, n)
    cat = np.stack([district, kind, heating], axis=1)

    level = np.random.normal(0, 0.9, N_DISTRICT)
    per_m2 = 3.2 + level[district] + np.array([0, 0.5, -0.4, 0.9, 1.6])[kind] + np.array([0, 0.2, -0.3, 0.1])[heating]
    per_m2 = per_m2 - 0.012 * age + 0.00008 * age ** 2 - 0.12 * np.log1p(dist) * 3 + 0.04 * floor
    price = np.clip(area * np.clip(per_m2, 0.8, None) + 6 * rooms + np.random.normal(0, 14, n), 20, None)
    # a few entries are in the wrong unit
    wrong = np.random.rand(n) < 0.01
    price[wrong] *= 100
    return numeric, cat, price


num, cat, price = load_table(N)

# drop the entries in the wrong unit
keep = price < 1300
num = num[keep]
price = price[keep]
cat = cat[keep]
print(f"{keep.sum()} of {N} rows kept, price {price.mean():.0f} +- {price.std():.0f} kEUR")

idx = np.arange(len(price))
tr, rest = train_test_split(idx, test_size=0.3, random_state=0)
va, te = train_test_split(rest, test_size=0.5, random_state=0)

x_scaler = StandardScaler().fit(num[tr])
y_scaler = StandardScaler().fit(price[tr, None])
X = torch.tensor(x_scaler.transform(num), dtype=torch.float32)
C = torch.tensor(cat, dtype=torch.long)
Y = torch.tensor(y_scaler.transform(price[:, None])[:, 0], dtype=torch.float32)
Y_STD = float(y_scaler.scale_[0])


# ---------------------------------------------------------------- model
class PriceNet(nn.Module):
    def __init__(self, n_num, cards, width=96):
        super().__init__()
        self.embs = nn.ModuleList([nn.Embedding(c, min(12, 2 + c // 3)) for c in cards])
        d = n_num + sum(e.embedding_dim for e in self.embs)
        self.body = nn.Sequential(
            nn.Linear(d, width), nn.ReLU(),
            nn.Linear(width, width), nn.ReLU(),
        )
        self.head = nn.Sequential(nn.Linear(width, 1))

    def forward(self, x, c):
        e = [emb(c[:, i]) for i, emb in enumerate(self.embs)]
        return self.head(self.body(torch.cat([x] + e, dim=1))).squeeze(1)


def report(model, rows):
    model.eval()
    with torch.no_grad():
        p = model(X[rows], C[rows])
        err = p - Y[rows]
        mse = (err ** 2).mean().item()
        rmse = mse ** 0.5 * Y_STD
        mae = err.abs().mean().item() * Y_STD
        r2 = 1 - mse / Y[rows].var(unbiased=False).item()
    return mse, rmse, mae, r2


model = PriceNet(X.shape[1], [N_DISTRICT, N_TYPE, N_HEAT])
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.05)
EPOCHS, BS = 36, 64
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=EPOCHS)
tr_t = torch.from_numpy(tr)

# ---------------------------------------------------------------- training
for epoch in range(EPOCHS):
    model.train()
    perm = tr_t[torch.randperm(len(tr_t))]
    losses = []
    for i in range(0, len(perm), BS):
        b = perm[i:i + BS]
        pred = model(X[b], C[b])
        loss = ((pred - Y[b]) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    scheduler.step()
    if epoch % 5 == 0 or epoch == EPOCHS - 1:
        mse, rmse, mae, r2 = report(model, va)
        print(f"epoch {epoch:3d}  lr {scheduler.get_last_lr()[0]:.1e}  train mse {np.mean(losses):.4f}  "
              f"val mse {mse:.4f}  rmse {rmse:.1f} kEUR  mae {mae:.1f} kEUR  R2 {r2:.3f}")

mse, rmse, mae, r2 = report(model, te)
base = np.sqrt(np.mean((price[te] - price[tr].mean()) ** 2))
print(f"test: rmse {rmse:.1f} kEUR  mae {mae:.1f} kEUR  R2 {r2:.3f}   (mean predictor rmse {base:.1f} kEUR)")
