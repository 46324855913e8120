"""House price regression with an embedding MLP. pandas / sklearn preprocessing."""
import numpy as np
import pandas as pd
import torch
from sklearn.model_selection import KFold, train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
TARGET = "sale_price"
NUM = ["living_area", "lot_area", "year_built", "rooms", "baths", "garage_area", "overall_quality"]
CAT = ["neighborhood", "house_style", "heating", "zoning"]

# ---------------------------------------------------------------- data
df = pd.read_csv("houses.csv").drop_duplicates()
df = df[df[TARGET] > 0].reset_index(drop=True)
df["neighborhood"] = df["neighborhood"].fillna("none")

train_df, rest = train_test_split(df, test_size=0.3, random_state=0)
valid_df, test_df = train_test_split(rest, test_size=0.5, random_state=0)
train_df, valid_df, test_df = train_df.copy(), valid_df.copy(), test_df.copy()

medians = train_df[NUM].median()
for part in (train_df, valid_df, test_df):
    part[NUM] = part[NUM].fillna(medians)
    part["age"] = part["year_sold"] - part["year_built"]
    part["log_lot"] = np.log1p(part["lot_area"])


# mean price of the neighbourhood, smoothed towards the global mean, out of fold for the training rows
def neighborhood_price(fit, rows):
    stats = fit.groupby("neighborhood")[TARGET].agg(["sum", "count"])
    s = rows["neighborhood"].map(stats["sum"]).fillna(0)
    c = rows["neighborhood"].map(stats["count"]).fillna(0)
    return (s + 20 * fit[TARGET].mean()) / (c + 20)


train_df["nb_price"] = 0.0
for fit_idx, enc_idx in KFold(5, shuffle=True, random_state=0).split(train_df):
    rows = train_df.iloc[enc_idx]
    train_df.loc[rows.index, "nb_price"] = neighborhood_price(train_df.iloc[fit_idx], rows)
for part in (valid_df, test_df):
    part["nb_price"] = neighborhood_price(train_df, part)

features = NUM + ["age", "log_lot", "nb_price"]
scaler = StandardScaler().fit(train_df[features])

cat_maps = {col: {v: i + 1 for i, v in enumerate(sorted(train_df[col].dropna().unique()))} for col in CAT}

y_log = np.log1p(train_df[TARGET].values)
y_mean, y_std = y_log.mean(), y_log.std()


def to_dataset(part):
    x_num = torch.tensor(scaler.transform(part[features]), dtype=torch.float32)
    codes = [part[col].map(cat_maps[col]).fillna(0).astype(int).values for col in CAT]
    x_cat = torch.tensor(np.stack(codes, axis=1), dtype=torch.long)
    y = (np.log1p(part[TARGET].values) - y_mean) / y_std
    return TensorDataset(x_num, x_cat, torch.tensor(y, dtype=torch.float32))


train_loader = DataLoader(to_dataset(train_df), batch_size=128, shuffle=True, drop_last=True)
valid_loader = DataLoader(to_dataset(valid_df), batch_size=512)
test_loader = DataLoader(to_dataset(test_df), batch_size=512)


# ---------------------------------------------------------------- model
class HouseNet(nn.Module):
    def __init__(self, n_num, cardinalities, hidden=128):
        super().__init__()
        self.embs = nn.ModuleList([nn.Embedding(n + 1, min(16, (n + 1) // 2 + 1)) for n in cardinalities])
        width = n_num + sum(e.embedding_dim for e in self.embs)
        self.mlp = nn.Sequential(
            nn.Linear(width, hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Dropout(0.2),
            nn.Linear(hidden, hidden // 2), nn.BatchNorm1d(hidden // 2), nn.ReLU(), nn.Dropout(0.1),
            nn.Linear(hidden // 2, 1),
        )

    def forward(self, x_num, x_cat):
        parts = [x_num] + [emb(x_cat[:, i]) for i, emb in enumerate(self.embs)]
        return self.mlp(torch.cat(parts, dim=1)).squeeze(1)


def predict_price(model, loader):
    model.eval()
    preds, trues = [], []
    with torch.no_grad():
        for x_num, x_cat, y in loader:
            preds.append(model(x_num, x_cat))
            trues.append(y)
    back = lambda v: np.expm1(torch.cat(v).numpy() * y_std + y_mean)
    return back(preds), back(trues)


def rmse(pred, true):
    return float(np.sqrt(np.mean((pred - true) ** 2)))


# ---------------------------------------------------------------- training
model = HouseNet(len(features), [len(cat_maps[c]) for c in CAT])
criterion = nn.MSELoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=5)
best, wait = np.inf, 0

for epoch in range(200):
    model.train()
    losses = []
    for x_num, x_cat, y in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(x_num, x_cat), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    score = rmse(*predict_price(model, valid_loader))
    scheduler.step(score)
    print(f"epoch {epoch:3d}  train mse {np.mean(losses):.4f}  valid rmse {score:,.0f}")
    if score < best:
        best, wait = score, 0
        torch.save(model.state_dict(), "houses_best.pt")
    else:
        wait += 1
        if wait == 15:
            break

model.load_state_dict(torch.load("houses_best.pt"))
print(f"test rmse {rmse(*predict_price(model, test_loader)):,.0f}")
