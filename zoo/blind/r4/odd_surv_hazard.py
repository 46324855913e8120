"""Discrete-time hazard: most (patient, interval) cells are 'no event', the loss starts and ends small."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(4)
K, N = 30, 1500
x = torch.randn(N, 6)
logit = -4.5 + 0.9 * x[:, :1] - 0.7 * x[:, 1:2] * x[:, 2:3] + 0.04 * torch.arange(K)
dies = torch.rand(N, K) < torch.sigmoid(logit)
first = torch.where(dies.any(1), dies.float().argmax(1), torch.full((N,), K))
cens = torch.randint(5, K, (N,))
stop = torch.minimum(first, cens)
event = (first <= cens) & (first < K)
steps = torch.arange(K)
at_risk = (steps[None] <= stop[:, None]).float()
y = ((steps[None] == stop[:, None]) & event[:, None]).float()

net = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 1))
base = nn.Parameter(torch.full((K,), -4.0))            # prior: about two per cent per interval
opt = torch.optim.Adam([{"params": net.parameters()}, {"params": [base], "lr": 0.03}], lr=5e-3)


def nll(i):
    z = net(x[i]) + base
    cell = F.binary_cross_entropy_with_logits(z, y[i], reduction="none") * at_risk[i]
    return cell.sum() / at_risk[i].sum()


def c_index(i):
    with torch.no_grad():
        h = net(x[i]).squeeze(1)
    ok = (stop[i][:, None] < stop[i][None]) & event[i][:, None]
    return (h[:, None] > h[None])[ok].float().mean().item()


tr, va = torch.arange(1100), torch.arange(1100, N)
print(f"share of event cells {(y.sum() / at_risk.sum()).item():.4f}")
for epoch in range(20):
    tot = 0.0
    for i in tr[torch.randperm(len(tr))].split(50):
        loss = nll(i)
        opt.zero_grad()
        loss.backward()
        opt.step()
        tot += loss.item()
    if epoch % 3 == 1:
        with torch.no_grad():
            v = nll(va).item()
        print(f"epoch {epoch} nll per cell {tot / 22:.4f} val {v:.4f} c-index {c_index(va):.3f}")
