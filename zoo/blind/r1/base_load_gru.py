"""Forecast the next hour of electricity load from the last 24 hours of 3 channels."""
import copy
import numpy as np
import torch
from torch import nn, optim

torch.manual_seed(21)
rs = np.random.RandomState(21)
WINDOW = 24

# --- synthetic series: load, temperature, price
t = np.arange(1500)
level = np.cumsum(rs.randn(len(t))) * 0.35
temp = 10 * np.sin(2 * np.pi * t / 24 - 1) + np.cumsum(rs.randn(len(t))) * 0.1
price = rs.gamma(2.0, 1.0, len(t))
load = np.zeros(len(t))
for i in range(1, len(t)):
    load[i] = 50 + level[i] + 4 * np.sin(2 * np.pi * i / 24) + 1.5 * np.sin(2 * np.pi * i / 12) + 0.2 * temp[i - 1] - 1.0 * price[i - 1] + 0.2 * rs.randn()
series = np.stack([load, temp, price]).astype(np.float32)          # (channels, time)


def windows(lo, hi):
    xs, ys = [], []
    for i in range(lo, hi - WINDOW):
        w = series[:, i:i + WINDOW].copy()
        target = series[0, i + WINDOW]
        centre = w[0].mean()
        w[0] -= centre
        xs.append(w)
        ys.append(target - centre)
    x, y = torch.tensor(np.array(xs)), torch.tensor(np.array(ys))
    return x / torch.tensor([5.0, 8.0, 1.5]).view(1, 3, 1), y / 5.0


x_train, y_train = windows(0, 1000)
x_val, y_val = windows(1000, 1250)
x_test, y_test = windows(1250, 1500)


class Forecaster(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.gru = nn.GRU(3, hidden, batch_first=True)
        self.fc = nn.Linear(hidden, 1)

    def forward(self, x):
        x = x.transpose(1, 2)                  # (batch, time, channels)
        out, _ = self.gru(x)
        return self.fc(out[:, -1]).squeeze(-1)


def evaluate(net, x, y):
    net.eval()
    with torch.no_grad():
        return nn.functional.mse_loss(net(x), y).item()


net = Forecaster()
opt = optim.RMSprop(net.parameters(), lr=4e-3)
best, best_state = float("inf"), None
for epoch in range(9):
    net.train()
    perm = torch.randperm(len(x_train))
    ep = 0.0
    for k in range(0, len(perm), 48):
        b = perm[k:k + 48]
        loss = nn.functional.mse_loss(net(x_train[b]), y_train[b])
        opt.zero_grad()
        loss.backward()
        opt.step()
        ep += loss.item() * len(b)
    val = evaluate(net, x_val, y_val)
    if val < best:
        best, best_state = val, copy.deepcopy(net.state_dict())
    print(f"epoch {epoch}: train {ep / len(perm):.4f} val {val:.4f}")
net.load_state_dict(best_state)
print(f"test mse {evaluate(net, x_test, y_test):.4f}  (variance of target {y_test.var():.4f})")
