# %% Hourly-like demand forecasting for many shops with a small encoder transformer
import math
import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
torch.manual_seed(42)
np.random.seed(42)
L, H, PERIOD = 48, 12, 24

# %% data: daily profile per shop + slow level + promotions + noise
def make_shop(n=420):
    t = np.arange(n)
    level = np.exp(np.random.normal(4.0, 0.6))
    phase = np.random.uniform(0, PERIOD)
    shape = np.sin(2 * np.pi * (t + phase) / PERIOD) + 0.5 * np.sin(4 * np.pi * (t + 2 * phase) / PERIOD)
    slow = np.cumsum(np.random.normal(0, 0.06, n))
    ar = np.zeros(n)
    for k in range(1, n):
        ar[k] = 0.75 * ar[k - 1] + np.random.normal(0, 0.12)
    y = level * (2 + 0.6 * shape + slow + ar)
    return y.astype(np.float32)

shops = np.stack([make_shop() for _ in range(24)])
T = shops.shape[1]
cut_val, cut_test = int(T * 0.7), int(T * 0.85)

# %% windows: every window is scaled by its own history
def windows(start, end, stride):
    xs, ys, loc, scale = [], [], [], []
    for s in shops:
        for t in range(start, end - L - H + 1, stride):
            hist, fut = s[t:t + L], s[t + L:t + L + H]
            m, sd = hist.mean(), hist.std() + 1e-6
            xs.append((hist - m) / sd)
            ys.append((fut - m) / sd)
            loc.append(m)
            scale.append(sd)
    f = lambda a: torch.tensor(np.array(a), dtype=torch.float32)
    return TensorDataset(f(xs), f(ys), f(loc), f(scale))

train_ds = windows(0, cut_val, 4)
val_ds = windows(cut_val - L, cut_test, 3)
test_ds = windows(cut_test - L, T, 3)
train_dl = DataLoader(train_ds, batch_size=64, shuffle=True)
val_dl = DataLoader(val_ds, batch_size=256)
test_dl = DataLoader(test_ds, batch_size=256)
print(len(train_ds), "train windows", len(val_ds), "val", len(test_ds), "test")

# %% model
class PositionalEncoding(nn.Module):
    def __init__(self, d, max_len=512):
        super().__init__()
        pos = torch.arange(max_len).unsqueeze(1)
        div = torch.exp(torch.arange(0, d, 2) * (-math.log(200.0) / d))
        pe = torch.zeros(max_len, d)
        pe[:, 0::2] = torch.sin(pos * div)
        pe[:, 1::2] = torch.cos(pos * div)
        self.register_buffer("pe", pe)

    def forward(self, x):
        return x + self.pe[:x.size(1)].unsqueeze(0)

class Forecaster(nn.Module):
    def __init__(self, d=32, heads=4, layers=2):
        super().__init__()
        self.inp = nn.Linear(3, d)
        self.pos = PositionalEncoding(d)
        enc = nn.TransformerEncoderLayer(d, heads, 64, dropout=0.05, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(enc, layers, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(d)
        self.head = nn.Linear(2 * d, H)

    def forward(self, x):
        lag = torch.cat([torch.zeros_like(x[:, :1]), x[:, 1:] - x[:, :-1]], 1)
        day = torch.cat([torch.zeros_like(x[:, :PERIOD]), x[:, PERIOD:] - x[:, :-PERIOD]], 1)
        h = self.inp(torch.stack([x, lag, day], -1))
        h = self.norm(self.encoder(self.pos(h)))
        h = torch.cat([h[:, -1], h[:, -PERIOD]], -1)
        return self.head(h)

# %% training
net = Forecaster()
epochs, warm = 7, 40
total_steps = epochs * len(train_dl)
opt = torch.optim.AdamW(net.parameters(), lr=4e-3, weight_decay=1e-3)

def lr_at(step):
    if step < warm:
        return (step + 1) / warm
    return 0.5 * (1 + math.cos(math.pi * (step - warm) / (total_steps - warm)))

sched = torch.optim.lr_scheduler.LambdaLR(opt, lr_at)
loss_fn = nn.HuberLoss()

def evaluate(dl):
    net.eval()
    ae, naive, loss, n = 0.0, 0.0, 0.0, 0
    with torch.no_grad():
        for x, y, loc, scale in dl:
            p = net(x)
            loss += loss_fn(p, y).item() * len(x)
            ae += ((p - y).abs() * scale[:, None]).mean(1).sum().item()
            seasonal = x[:, L - PERIOD:L - PERIOD + H]
            naive += ((seasonal - y).abs() * scale[:, None]).mean(1).sum().item()
            n += len(x)
    return loss / n, ae / n, naive / n

for epoch in range(epochs):
    net.train()
    tot = 0.0
    for x, y, loc, scale in train_dl:
        opt.zero_grad(set_to_none=True)
        loss = loss_fn(net(x), y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        sched.step()
        tot += loss.item()
    vl, mae, naive = evaluate(val_dl)
    print(f"epoch {epoch}: train {tot / len(train_dl):.4f} val {vl:.4f} | val MAE {mae:.2f} units (seasonal naive {naive:.2f})")

tl, mae, naive = evaluate(test_dl)
print(f"test huber {tl:.4f} | MAE {mae:.2f} units, seasonal naive {naive:.2f}, skill {1 - mae / naive:.3f}")
