"""Regression with MC dropout: prediction deliberately runs with dropout on and averages 40 passes."""
import torch
import torch.nn as nn

torch.manual_seed(9)
x = torch.rand(3000, 1) * 6 - 3
y = torch.sin(2 * x) + 0.3 * x + 0.1 * torch.randn_like(x)
xv = torch.linspace(-3, 3, 300).unsqueeze(1)
yv = torch.sin(2 * xv) + 0.3 * xv
far = torch.linspace(5, 7, 100).unsqueeze(1)
net = nn.Sequential(nn.Linear(1, 128), nn.ReLU(), nn.Dropout(0.05), nn.Linear(128, 128), nn.ReLU(), nn.Dropout(0.05), nn.Linear(128, 1))
opt = torch.optim.Adam(net.parameters(), lr=2e-3)


@torch.no_grad()
def mc_predict(z, k=40):
    net.train()
    s = torch.stack([net(z) for _ in range(k)])
    return s.mean(0), s.std(0)


for ep in range(25):
    net.train()
    perm = torch.randperm(len(x))
    tot = 0.0
    for i in range(0, len(x), 64):
        idx = perm[i:i + 64]
        loss = (net(x[idx]) - y[idx]).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        tot += loss.item() * len(idx)
    if ep % 3 == 0 or ep == 24:
        m, s = mc_predict(xv)
        _, sf = mc_predict(far)
        print(f"epoch {ep} train {tot / len(x):.4f} val mse {(m - yv).pow(2).mean():.4f} std inside {s.mean():.3f} outside {sf.mean():.3f}")
