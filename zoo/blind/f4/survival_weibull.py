"""Weibull regression for time-to-event with exact and left-censored records."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
N, D, B = 16000, 6, 64

X = torch.randn(N, D)
true_scale = torch.exp(0.4 * X[:, 0] - 0.3 * X[:, 1])
u = torch.rand(N).clamp(0.02, 0.98)
T = true_scale * (-torch.log(u)) ** (1 / 1.4) + 0.03
left = torch.rand(N) < 0.25                   # event happened before the visit at T
T[left] = T[left] * (1 + torch.rand(int(left.sum())))
T[8213] = 2e-8
left[8213] = False

model = nn.Sequential(nn.Linear(D, 32), nn.ReLU(), nn.Linear(32, 2))
opt = torch.optim.Adam(model.parameters(), lr=2e-3)


def weibull_ll(out, t, is_left):
    scale = F.softplus(out[:, 0]) + 0.05
    shape = F.softplus(out[:, 1]) + 0.7
    H = (t / scale) ** shape
    log_h = torch.log(shape) - torch.log(scale) + (shape - 1) * (torch.log(t) - torch.log(scale))
    ll_exact = log_h - H
    ll_left = torch.log(1.0 - torch.exp(-H))
    return torch.where(is_left, ll_left, ll_exact)


for it in range(N // B):
    sl = slice(it * B, (it + 1) * B)
    ll = weibull_ll(model(X[sl]), T[sl], left[sl])
    loss = -ll.mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if it % 20 == 0 or it == N // B - 1:
        print(it, round(loss.item(), 4))
