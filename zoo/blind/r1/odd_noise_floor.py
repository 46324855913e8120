"""Next-day direction of a noisy market: the best possible accuracy is about 60 %, the loss can hardly fall."""
import torch
import torch.nn as nn

torch.manual_seed(25)
n = 6000
x = torch.randn(n, 6)
p = torch.sigmoid(0.5 * x[:, 0] - 0.4 * x[:, 1])
y = torch.bernoulli(p)
bayes = nn.functional.binary_cross_entropy(p[5000:], y[5000:]).item()
net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
opt = torch.optim.Adam(net.parameters(), lr=2e-3, weight_decay=1e-4)
f = nn.BCEWithLogitsLoss()
for ep in range(5):
    tr = 0.0
    for b in torch.randperm(5000).split(100):
        l = f(net(x[b]).squeeze(-1), y[b])
        opt.zero_grad()
        l.backward()
        opt.step()
        tr += l.item() / 50
    with torch.no_grad():
        o = net(x[5000:]).squeeze(-1)
    print(f"epoch {ep} train {tr:.4f} test {f(o, y[5000:]).item():.4f} acc {((o > 0).float() == y[5000:]).float().mean():.3f} (best possible loss {bayes:.4f})")
