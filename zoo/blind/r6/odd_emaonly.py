"""Constant, deliberately high learning rate; only the exponential moving average of the weights is ever evaluated or shipped.
Goal: EMA test error clearly below the noisy raw model's error, RMSE near the noise level 0.2."""
import copy
import torch
import torch.nn as nn

torch.set_num_threads(1)
torch.manual_seed(14)


def sample(n):
    x = torch.rand(n, 4) * 4 - 2
    y = torch.sin(2 * x[:, :1]) + x[:, 1:2] * x[:, 2:3] * 0.5 + 0.2 * torch.randn(n, 1)
    return x, y


net = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
avg = copy.deepcopy(net).requires_grad_(False)
opt = torch.optim.Adam(net.parameters(), lr=1.2e-2)
x, y = sample(8000)
xt, yt = sample(3000)
step = 0
for epoch in range(30):
    for idx in torch.randperm(8000).split(64):
        loss = (net(x[idx]) - y[idx]).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        step += 1
        decay = min(0.998, (1 + step) / (10 + step))
        with torch.no_grad():
            for a, p in zip(avg.parameters(), net.parameters()):
                a.lerp_(p, 1 - decay)
    if epoch % 5 == 4:
        with torch.no_grad():
            raw, ema = (net(xt) - yt).pow(2).mean().sqrt(), (avg(xt) - yt).pow(2).mean().sqrt()
        print(f"epoch {epoch + 1} last batch mse {loss.item():.4f} raw rmse {raw:.4f} ema rmse {ema:.4f}")
