# House prices, months in order: the model is carried through history month by month, and judged on the next months.
import numpy as np
import torch
import torch.nn as nn

rng = np.random.default_rng(8)
torch.manual_seed(8)
MONTHS, PER = 72, 40
month = np.repeat(np.arange(MONTHS), PER)
n = len(month)
size, garden, floor = rng.normal(0, 1, n), rng.random(n) < 0.4, rng.integers(0, 8, n)
trend = 0.010 * month + 0.08 * np.sin(2 * np.pi * month / 12)
logp = 12.1 + 0.30 * size + 0.12 * garden + 0.02 * floor + trend + rng.normal(0, 0.08, n)
x = np.column_stack([size, garden, floor / 4 - 1, month / 36 - 1, np.sin(2 * np.pi * month / 12), np.cos(2 * np.pi * month / 12)])
x, y = torch.tensor(x, dtype=torch.float32), torch.tensor((logp - 12.4) / 0.4, dtype=torch.float32)
cut = 60 * PER
xt, yt, xv, yv = x[:cut], y[:cut], x[cut:], y[cut:]

net = nn.Sequential(nn.Linear(6, 32), nn.SiLU(), nn.Linear(32, 1))
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
for sweep in range(8):
    losses = []
    for m in range(60):
        s = slice(m * PER, (m + 1) * PER)
        loss = ((net(xt[s]).squeeze(1) - yt[s]) ** 2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    with torch.no_grad():
        p = net(xv).squeeze(1)
        mape = (torch.exp((p - yv) * 0.4) - 1).abs().mean().item()
    r2 = 1 - ((p - yv) ** 2).sum().item() / ((yv - yv.mean()) ** 2).sum().item()
    print(f"sweep {sweep} mse {np.mean(losses):.4f} next year: mse {((p - yv) ** 2).mean().item():.4f} r2 {r2:.3f} relative error {mape:.3f}")
