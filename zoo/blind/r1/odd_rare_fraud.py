import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

torch.manual_seed(13)
n = 4000
x = torch.randn(n, 8)
risk = x[:, 0] + x[:, 1] * x[:, 2] + 0.3 * torch.randn(n)
y = (risk > risk.quantile(0.97)).float()
tr, te = slice(0, 3000), slice(3000, n)
w = torch.where(y[tr] == 1, 1.0 / y[tr].sum(), 1.0 / (1 - y[tr]).sum())
loader = DataLoader(TensorDataset(x[tr], y[tr]), batch_size=64, sampler=WeightedRandomSampler(w, 3000))
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
bce = nn.BCEWithLogitsLoss()
for ep in range(6):
    s = 0.0
    for xb, yb in loader:
        loss = bce(model(xb).squeeze(1), yb)
        opt.zero_grad()
        loss.backward()
        opt.step()
        s += loss.item()
    with torch.no_grad():
        p = model(x[te]).squeeze(1) > 0
    t = y[te] == 1
    print(f"epoch {ep} loss {s / len(loader):.4f} recall {(p & t).sum() / t.sum():.3f} specificity {(~p & ~t).sum() / (~t).sum():.3f}")
