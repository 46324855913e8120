"""House-price-like table: numbers with gaps (-999), a shop id with many values, early stopping."""
import copy

import numpy as np
import torch
from torch import nn

torch.set_num_threads(1)
np.random.seed(5)
torch.manual_seed(5)

# ---------------------------------------------------------------- data
N, NUM, SHOPS = 3200, 10, 900
x_num = np.random.randn(N, NUM) * np.array([1, 5, 20, 1, 0.1, 3, 1, 1, 50, 1]) + np.array([0, 30, 100, 0, 1, 0, 5, 0, 400, 0])
shop = np.random.randint(0, SHOPS, N)
shop_effect = np.random.randn(SHOPS) * 25
z = (x_num - x_num.mean(0)) / x_num.std(0)
price = 180 + 40 * np.sin(1.5 * z[:, 0]) + 30 * z[:, 1] * z[:, 2] + 25 * np.abs(z[:, 3]) - 35 * z[:, 4] \
    + 20 * z[:, 8] * (z[:, 5] > 0) + shop_effect[shop] + np.random.randn(N) * 22
gaps = np.random.rand(N, NUM) < 0.04
x_num[gaps] = -999.0

order = np.random.permutation(N)
tr, va, te = order[:2200], order[2200:2700], order[2700:]

# ---------------------------------------------------------------- features
missing = x_num == -999.0
x_num = np.where(missing, np.nan, x_num)
mu, sd = np.nanmean(x_num[tr], axis=0), np.nanstd(x_num[tr], axis=0)
x_std = np.nan_to_num((x_num - mu) / sd, nan=0.0)


def shop_means(keys, values, smooth=1.0):
    total = np.bincount(keys, weights=values, minlength=SHOPS)
    count = np.bincount(keys, minlength=SHOPS)
    prior = values.mean()
    return (total + smooth * prior) / (count + smooth)


shop_code = np.zeros(N)
folds = np.arange(len(tr)) % 5
for f in range(5):
    hold, rest = tr[folds == f], tr[folds != f]
    shop_code[hold] = shop_means(shop[rest], price[rest])[shop[hold]]
shop_code[va] = shop_means(shop[tr], price[tr])[shop[va]]
shop_code[te] = shop_means(shop[tr], price[tr])[shop[te]]
shop_code = (shop_code - shop_code[tr].mean()) / shop_code[tr].std()

X = torch.tensor(np.column_stack([x_std, missing, shop_code]), dtype=torch.float32)
y_mean, y_sd = price[tr].mean(), price[tr].std()
Y = torch.tensor((price - y_mean) / y_sd, dtype=torch.float32)
X_tr, Y_tr = X[tr], Y[tr]
X_va, Y_va = X[va], Y[va]
X_te, Y_te = X[te], Y[te]


class MLP(nn.Module):
    def __init__(self, d_in, width=96):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(d_in, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Dropout(0.1))
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        return self.head(self.body(x)).squeeze(-1)


def score(model, x, y):
    model.eval()
    with torch.no_grad():
        pred = model(x)
    mse = ((pred - y) ** 2).mean().item()
    r2 = 1 - mse / y.var(unbiased=False).item()
    return mse, r2, (pred - y).abs().mean().item() * y_sd


model = MLP(X.shape[1])
loss_fn = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3, weight_decay=1e-5)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode="min", factor=0.3, patience=3)
best, best_weights, bad_epochs, batch = float("inf"), None, 0, 100

for epoch in range(45):
    model.train()
    perm = torch.randperm(len(X_tr))
    running = 0.0
    for i in range(0, len(perm), batch):
        idx = perm[i:i + batch]
        xb, yb = X_tr[idx], Y_tr[idx]
        optimizer.zero_grad()
        pred = model(xb)
        loss = loss_fn(pred, yb)
        loss.backward()
        optimizer.step()
        running += loss.item() * len(idx)
    val_mse, val_r2, val_mae = score(model, X_va, Y_va)
    scheduler.step(val_mse)
    if val_mse < best:
        best, bad_epochs = val_mse, 0
        best_weights = copy.deepcopy(model.state_dict())
    else:
        bad_epochs += 1
    if epoch % 5 == 0:
        print(f"epoch {epoch:3d} train mse {running / len(perm):.4f} val mse {val_mse:.4f} r2 {val_r2:.3f} "
              f"mae {val_mae:.2f} lr {optimizer.param_groups[0]['lr']:.1e}")
    if bad_epochs >= 10:
        print("stopped at epoch", epoch)
        break

model.load_state_dict(best_weights)
print("best val mse %.4f" % best)
test_mse, test_r2, test_mae = score(model, X_te, Y_te)
print(f"test mse {test_mse:.4f} r2 {test_r2:.3f} mae {test_mae:.2f} (std of price {price[te].std():.1f})")
