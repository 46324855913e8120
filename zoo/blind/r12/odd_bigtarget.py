# House-price like targets of 1e5..1e6, L1 loss in dollars on purpose: losses of tens of thousands are fine here
import numpy as np, torch, torch.nn as nn
torch.manual_seed(0); r = np.random.default_rng(0)
n = 3000; area = r.uniform(40, 250, n); rooms = (area / 30 + r.normal(0, .7, n)).round().clip(1); dist = r.exponential(8, n); age = r.uniform(0, 90, n)
price = 3200 * area * np.exp(-dist / 25) + 15000 * rooms - 1200 * age + 60000 + r.normal(0, 12000, n)
X = np.stack([area, rooms, dist, age], 1); X = torch.tensor((X - X[:2400].mean(0)) / X[:2400].std(0), dtype=torch.float32); Y = torch.tensor(price, dtype=torch.float32)
class PriceNet(nn.Module):
    def __init__(self, m, s):
        super().__init__(); self.body = nn.Sequential(nn.Linear(4, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 1)); self.register_buffer("m", m); self.register_buffer("s", s)
    def forward(self, x): return self.body(x).squeeze(1) * self.s + self.m
net = PriceNet(Y[:2400].mean(), Y[:2400].std()); opt = torch.optim.Adam(net.parameters(), 2e-3); sch = torch.optim.lr_scheduler.ExponentialLR(opt, 0.94)
print("MAE of the median", (Y[2400:] - Y[:2400].median()).abs().mean().item())
for ep in range(1, 41):
    s = 0.
    for b in torch.randperm(2400).split(60):
        loss = (net(X[b]) - Y[b]).abs().mean(); opt.zero_grad(); loss.backward(); opt.step(); s += loss.item() / 40
    sch.step()
    if ep % 4 == 0:
        with torch.no_grad(): p = net(X[2400:]); print(f"epoch {ep} train MAE {s:,.0f} val MAE {(p-Y[2400:]).abs().mean():,.0f} R2 {1-(p-Y[2400:]).pow(2).sum()/(Y[2400:]-Y[2400:].mean()).pow(2).sum():.4f}")
