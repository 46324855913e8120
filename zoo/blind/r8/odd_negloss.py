"""Heteroscedastic regression with a Gaussian likelihood: the loss goes well below zero and should."""
import math

import torch
import torch.nn as nn

torch.set_num_threads(1)
torch.manual_seed(1)


def data(n):
    x = torch.rand(n, 1) * 6 - 3
    noise = 0.02 + 0.06 * torch.sigmoid(2 * x)
    return x, torch.sin(2 * x) * 0.6 + noise * torch.randn(n, 1), noise


x_tr, y_tr, _ = data(2500)
x_va, y_va, s_va = data(1000)
body = nn.Sequential(nn.Linear(1, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 2))
opt = torch.optim.Adam(body.parameters(), lr=4e-3)
sched = torch.optim.lr_scheduler.ExponentialLR(opt, 0.93)


def nll(out, y):
    mean, log_s = out[:, :1], out[:, 1:].clamp(-6, 2)
    return (log_s + 0.5 * ((y - mean) / log_s.exp()) ** 2).mean()


for epoch in range(40):
    run = 0.0
    for idx in torch.randperm(len(x_tr)).split(50):
        loss = nll(body(x_tr[idx]), y_tr[idx])
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(body.parameters(), 5.0)
        opt.step()
        run += loss.item() * len(idx)
    sched.step()
    if epoch % 5 == 4:
        with torch.no_grad():
            out = body(x_va)
            val = nll(out, y_va)
            inside = ((y_va - out[:, :1]).abs() < 1.96 * out[:, 1:].exp()).float().mean()
        print(f"epoch {epoch:2d} train {run / len(x_tr):.3f} val {val:.3f} 95% interval covers {inside:.3f}")
best = (s_va.log() + 0.5).mean()
print(f"lowest possible expected loss {best:.3f}")
