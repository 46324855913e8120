"""Regression with Monte Carlo dropout: the network stays in train mode at prediction time to get a spread."""
import math
import torch
import torch.nn as nn

torch.manual_seed(0)
torch.set_num_threads(1)


def target(x):
    return torch.sin(3 * x) + 0.3 * x


def make(n, lo, hi):
    x = torch.rand(n, 1) * (hi - lo) + lo
    return x, target(x) + 0.05 * torch.randn(n, 1)


x_train, y_train = make(600, -2.0, 2.0)
x_val, y_val = make(200, -2.0, 2.0)
x_far, y_far = make(200, 3.0, 4.0)

net = nn.Sequential(
    nn.Linear(1, 128), nn.ReLU(), nn.Dropout(0.05),
    nn.Linear(128, 128), nn.ReLU(), nn.Dropout(0.05),
    nn.Linear(128, 1),
)
opt = torch.optim.Adam(net.parameters(), lr=3e-3, weight_decay=1e-6)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=30)


@torch.no_grad()
def mc_predict(x, passes=30):
    # dropout is wanted here: each pass is one draw from the approximate posterior
    net.train()
    draws = torch.stack([net(x) for _ in range(passes)])
    return draws.mean(0), draws.std(0)


for epoch in range(30):
    net.train()
    perm = torch.randperm(len(x_train))
    total = 0.0
    for i in range(0, len(perm), 50):
        rows = perm[i:i + 50]
        loss = (net(x_train[rows]) - y_train[rows]).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item() * len(rows)
    sched.step()
    if epoch % 3 == 2:
        mean, spread = mc_predict(x_val)
        rmse = (mean - y_val).pow(2).mean().sqrt().item()
        print(f"epoch {epoch:2d} train mse {total / len(perm):.4f} val rmse {rmse:.4f} spread {spread.mean().item():.4f}")

mean_in, spread_in = mc_predict(x_val, passes=100)
mean_out, spread_out = mc_predict(x_far, passes=100)
inside = ((mean_in - y_val).abs() < 3 * (spread_in + 0.05)).float().mean().item()
print(f"val rmse {(mean_in - y_val).pow(2).mean().sqrt().item():.4f} covered {inside:.3f}")
print(f"spread inside the data {spread_in.mean().item():.4f} outside {spread_out.mean().item():.4f}")
