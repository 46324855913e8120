"""Hourly load: earlier weeks for training, later weeks for validation, a gap of one window between."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

LAGS = 30


class Hours(Dataset):
    def __init__(self, series, start, stop):
        self.s, self.start, self.stop = series, start, stop

    def __len__(self):
        return self.stop - self.start - LAGS

    def __getitem__(self, i):
        a = self.start + i
        return self.s[a:a + LAGS], self.s[a + LAGS]


def get_series():
    g = np.random.default_rng(8)
    t = np.arange(1500)
    s = 10 + 0.002 * t + 2 * np.sin(2 * np.pi * t / 24) + np.sin(2 * np.pi * t / 168) + 0.25 * g.normal(size=t.size)
    return s


raw = get_series()
cut = 1100
mean, std = raw[:cut].mean(), raw[:cut].std()
series = torch.tensor((raw - mean) / std, dtype=torch.float32)
train = DataLoader(Hours(series, 0, cut), batch_size=40, shuffle=True)
val = DataLoader(Hours(series, cut + LAGS, len(series)), batch_size=64, shuffle=False)
torch.manual_seed(0)
model = nn.Linear(LAGS, 1)
opt = torch.optim.Adam(model.parameters(), lr=4e-3)
for epoch in range(12):
    model.train()
    s = 0.0
    for x, y in train:
        loss = nn.functional.smooth_l1_loss(model(x).squeeze(1), y)
        opt.zero_grad(); loss.backward(); opt.step()
        s += loss.item()
    model.eval()
    with torch.no_grad():
        pairs = [(model(x).squeeze(1), x[:, -1], y) for x, y in val]
    err = torch.cat([(p - y).abs() for p, _, y in pairs]).mean() * std
    persist = torch.cat([(l - y).abs() for _, l, y in pairs]).mean() * std
    print(f"epoch {epoch:2d} huber {s / len(train):.4f} | val mae {err:.3f} (persistence {persist:.3f})")
