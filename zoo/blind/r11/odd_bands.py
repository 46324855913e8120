"""Prediction bands by quantile regression (pinball loss at 5, 50 and 95 %).

The low and high quantiles are wrong on purpose for most rows, what counts is the coverage.
"""
import torch
import torch.nn as nn

torch.set_num_threads(1)
torch.manual_seed(5)
TAUS = torch.tensor([0.05, 0.5, 0.95])


def draw(n):
    x = torch.rand(n, 4) * 4 - 2
    scale = 0.2 + 0.6 * torch.sigmoid(2 * x[:, 1])
    e = torch.distributions.Exponential(1.0).sample((n,)) - 1
    return x, torch.sin(2 * x[:, 0]) + 0.5 * x[:, 2] + scale * e


def pinball(q, y):
    d = y[:, None] - q
    return torch.maximum(TAUS * d, (TAUS - 1) * d).mean()


x, y = draw(8000)
xv, yv = draw(4000)
net = nn.Sequential(nn.Linear(4, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 3))
opt = torch.optim.Adam(net.parameters(), 2e-3)
for epoch in range(25):
    for i in torch.randperm(8000).split(200):
        loss = pinball(net(x[i]), y[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
    if epoch == 15:
        opt.param_groups[0]["lr"] *= 0.1
    with torch.no_grad():
        q = net(xv)
    cov = ((yv > q[:, 0]) & (yv < q[:, 2])).float().mean()
    print(f"epoch {epoch:2d} pinball {loss.item():.4f} val {pinball(q, yv):.4f} coverage {cov:.3f}")
const = pinball(torch.quantile(y, TAUS).expand(4000, 3), yv)
print(f"coverage of the 90 % band {cov:.3f}; pinball {pinball(q, yv):.4f}, constant quantiles {const:.4f}")
