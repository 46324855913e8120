"""Walk-forward backtest: the model is re-trained from scratch for every fold on all earlier days, data stay in time order.
Each re-start makes the loss jump. Goal: average MAE at least 25% below the 'same as yesterday' forecast in the folds."""
import numpy as np
import torch
import torch.nn as nn

torch.set_num_threads(1)
rng = np.random.default_rng(28)
n = 1400
t = np.arange(n)
temp = 10 * np.sin(2 * np.pi * t / 365) + np.convolve(rng.normal(0, 4, n), np.ones(5) / 5, "same")
load = 100 + 8 * (t % 7 < 5) - 0.8 * temp + 0.02 * temp ** 2 + rng.normal(0, 1.0, n)
feats = np.stack([np.roll(load, 1), np.roll(load, 7), temp, *[(t % 7 == k) for k in range(7)]], 1)[7:].astype(np.float32)
load, n = load[7:].astype(np.float32), n - 7


def fit_predict(split, end, seed):
    torch.manual_seed(seed)
    mu, sd = feats[:split].mean(0), feats[:split].std(0)
    x = torch.from_numpy((feats[:end] - mu) / sd)
    ym, ys = load[:split].mean(), load[:split].std()
    y = torch.from_numpy((load[:end] - ym) / ys)
    net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))
    opt = torch.optim.Adam(net.parameters(), lr=5e-3)
    for epoch in range(30):
        for i in range(0, split, 50):
            loss = (net(x[i:i + 50]).squeeze(1)[: split - i] - y[i:min(i + 50, split)]).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        if epoch in (0, 29):
            print(f"   epoch {epoch} loss {loss.item():.4f}")
    with torch.no_grad():
        return net(x[split:end]).squeeze(1).numpy() * ys + ym


maes, naive = [], []
for k, split in enumerate(range(500, n - 100, 150)):
    end = min(split + 150, n)
    p = fit_predict(split, end, seed=k)
    maes.append(np.abs(p - load[split:end]).mean())
    naive.append(np.abs(load[split - 1:end - 1] - load[split:end]).mean())
    print(f"fold {k} trained on days 0..{split - 1}: MAE {maes[-1]:.3f} persistence {naive[-1]:.3f}")
print(f"mean MAE {np.mean(maes):.3f} against {np.mean(naive):.3f}, gain {1 - np.mean(maes) / np.mean(naive):.2f}")
