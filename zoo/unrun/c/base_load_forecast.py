# %% Imports and settings
import numpy as np
import pandas as pd
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

CONTEXT, HORIZON = 168, 24
BATCH, EPOCHS, LR = 64, 40, 1e-3
device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(1)

# %% Hourly electricity load and temperature
df = pd.read_csv("load_hourly.csv", parse_dates=["time"]).set_index("time").sort_index()
df = df[~df.index.duplicated()].asfreq("h")
df = df.ffill().dropna()

hour, dow = df.index.hour, df.index.dayofweek
df["hour_sin"], df["hour_cos"] = np.sin(2 * np.pi * hour / 24), np.cos(2 * np.pi * hour / 24)
df["dow_sin"], df["dow_cos"] = np.sin(2 * np.pi * dow / 7), np.cos(2 * np.pi * dow / 7)
df["load_day"] = df["load"].rolling(24).mean()
df["load_week"] = df["load"].rolling(168).mean()
df = df.dropna()

# %% Split by time: 70 / 15 / 15
n = len(df)
i_val, i_test = int(0.70 * n), int(0.85 * n)
scaled = ["load", "temp", "load_day", "load_week"]
mean, std = df.iloc[:i_val][scaled].mean(), df.iloc[:i_val][scaled].std()
load_mean, load_std = mean["load"], std["load"]
df[scaled] = (df[scaled] - mean) / std
values = df.to_numpy(dtype=np.float32)
target_col = df.columns.get_loc("load")
calendar_cols = [df.columns.get_loc(c) for c in ("hour_sin", "hour_cos", "dow_sin", "dow_cos")]


# %% Windows
class Windows(Dataset):
    def __init__(self, values):
        self.values = torch.from_numpy(values)

    def __len__(self):
        return len(self.values) - CONTEXT - HORIZON + 1

    def __getitem__(self, i):
        past = self.values[i:i + CONTEXT]
        future = self.values[i + CONTEXT:i + CONTEXT + HORIZON]
        return past, future[:, calendar_cols], future[:, target_col]


train_ds = Windows(values[:i_val])
val_ds = Windows(values[i_val:i_test])
test_ds = Windows(values[i_test:])
train_loader = DataLoader(train_ds, BATCH, shuffle=True, drop_last=True)
val_loader = DataLoader(val_ds, 256)
test_loader = DataLoader(test_ds, 256)


# %% Model: LSTM encoder, decoder over the known calendar of the next day
class Forecaster(nn.Module):
    def __init__(self, n_features, n_calendar, hidden=96):
        super().__init__()
        self.encoder = nn.LSTM(n_features, hidden, num_layers=2, dropout=0.1, batch_first=True)
        self.decoder = nn.Sequential(
            nn.Linear(hidden + n_calendar, hidden), nn.ReLU(), nn.Dropout(0.1), nn.Linear(hidden, 1))

    def forward(self, past, calendar):
        out, _ = self.encoder(past)
        context = out[:, -1].unsqueeze(1).expand(-1, calendar.size(1), -1)
        return self.decoder(torch.cat([context, calendar], dim=-1)).squeeze(-1)


model = Forecaster(values.shape[1], len(calendar_cols)).to(device)
criterion = nn.L1Loss()
optimizer = torch.optim.Adam(model.parameters(), lr=LR)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=10, gamma=0.5)


# %% Evaluation in megawatt
@torch.no_grad()
def evaluate(loader):
    model.eval()
    preds, trues = [], []
    for past, calendar, target in loader:
        preds.append(model(past.to(device), calendar.to(device)).cpu())
        trues.append(target)
    pred = torch.cat(preds).numpy() * load_std + load_mean
    true = torch.cat(trues).numpy() * load_std + load_mean
    mae = np.abs(pred - true).mean()
    mape = 100 * np.abs((pred - true) / true).mean()
    return mae, mape


# %% Training
best_mae = float("inf")
for epoch in range(EPOCHS):
    model.train()
    total = 0.0
    for past, calendar, target in train_loader:
        past, calendar, target = past.to(device), calendar.to(device), target.to(device)
        loss = criterion(model(past, calendar), target)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.item()
    scheduler.step()
    mae, mape = evaluate(val_loader)
    print(f"{epoch:2d} train {total / len(train_loader):.4f} val MAE {mae:.1f} MW MAPE {mape:.2f}%")
    if mae < best_mae:
        best_mae = mae
        torch.save(model.state_dict(), "forecaster.pt")

# %% Test, against the same hour one week before
model.load_state_dict(torch.load("forecaster.pt"))
mae, mape = evaluate(test_loader)
test_load = values[i_test:, target_col] * load_std
naive = np.mean([np.abs(test_load[i + CONTEXT:i + CONTEXT + HORIZON] - test_load[i:i + HORIZON]).mean()
                 for i in range(len(test_ds))])
print(f"test MAE {mae:.1f} MW, MAPE {mape:.2f}%, weekly naive MAE {naive:.1f} MW")
