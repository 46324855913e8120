"""Daily-return style regression: the signal explains about 4% of the variance and nothing more is there to be learned.
Goal: out-of-sample R2 at least 70% of the oracle R2, correlation with the true signal above 0.8."""
import torch
import torch.nn as nn

torch.set_num_threads(1)
torch.manual_seed(22)
beta = torch.randn(8) / 8 ** 0.5


def market(n):
    x = torch.randn(n, 8)
    signal = 0.2 * torch.tanh(x @ beta)/0.63
    return x, signal + torch.randn(n), signal


x, y, _ = market(40000)
xv, yv, _ = market(10000)
xt, yt, st = market(20000)
net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
opt = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=0.1)
mse = nn.MSELoss()
for epoch in range(8):
    total = 0.0
    for idx in torch.randperm(len(x)).split(400):
        loss = mse(net(x[idx]).squeeze(1), y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item() / 100
    with torch.no_grad():
        v = mse(net(xv).squeeze(1), yv).item()
    print(f"epoch {epoch} train mse {total:.4f} val mse {v:.4f} (variance of y {yv.var():.4f})")
with torch.no_grad():
    p = net(xt).squeeze(1)
r2 = 1 - (p - yt).pow(2).mean() / yt.var()
oracle = 1 - (st - yt).pow(2).mean() / yt.var()
print(f"test R2 {r2:.4f}, oracle R2 {oracle:.4f}, correlation with the signal {torch.corrcoef(torch.stack([p, st]))[0, 1]:.3f}")
