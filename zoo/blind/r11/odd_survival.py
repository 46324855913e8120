"""Cox model with a neural risk score. The partial likelihood needs the risk set, so each 'batch' is the
whole training set, sorted by time, never shuffled. 40 % of the rows are censored."""
import numpy as np
import torch
import torch.nn as nn

torch.set_num_threads(1)
torch.manual_seed(0)


def patients(n):
    x = torch.randn(n, 8)
    risk = 1.2 * x[:, 0] + x[:, 1] * x[:, 2] + 0.8 * (x[:, 3].abs() - 0.8)
    t = torch.distributions.Exponential(torch.exp(risk)).sample()
    c = torch.distributions.Exponential(torch.tensor(0.7)).sample((n,))
    event = (t <= c).float()
    return x, torch.minimum(t, c), event


def concordance(score, time, event):
    comparable = (time[:, None] < time[None]) & (event[:, None] == 1)
    right = (score[:, None] > score[None]).float()
    return (right * comparable).sum().item() / comparable.sum().item()


x, t, e = patients(3000)
order = t.argsort(descending=True)
x, t, e = x[order], t[order], e[order]
xv, tv, ev = patients(1000)
print(f"censored: {1 - e.mean().item():.2f}")


def neg_partial_likelihood(score):
    log_risk = torch.logcumsumexp(score, 0)
    return -((score - log_risk) * e).sum() / e.sum()


net = nn.Sequential(nn.Linear(8, 64), nn.SELU(), nn.Linear(64, 32), nn.SELU(), nn.Linear(32, 1, bias=False))
opt = torch.optim.AdamW(net.parameters(), 3e-3, weight_decay=0.02)
for epoch in range(250):
    loss = neg_partial_likelihood(net(x).squeeze(1))
    opt.zero_grad()
    loss.backward()
    opt.step()
    if epoch % 50 == 0:
        with torch.no_grad():
            c = concordance(net(xv).squeeze(1), tv, ev)
        print(f"epoch {epoch}: loss {loss.item():.3f} val C-index {c:.3f}")
xt, tt, et = patients(1500)
true = 1.2 * xt[:, 0] + xt[:, 1] * xt[:, 2] + 0.8 * (xt[:, 3].abs() - 0.8)
with torch.no_grad():
    c = concordance(net(xt).squeeze(1), tt, et)
print(f"test C-index {c:.3f} (true risk {concordance(true, tt, et):.3f})")
