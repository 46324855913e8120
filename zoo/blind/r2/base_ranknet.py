import numpy as np
import torch
from torch import nn

rng = np.random.default_rng(11)
torch.manual_seed(11)

N_QUERIES, DOCS = 360, 12
Q_DIM, D_DIM = 6, 8


def make_log(n):
    """Search log: every row is (query id, features, grade)."""
    qid, feats, grades = [], [], []
    w = np.array([1.0, -0.8, 0.7, 0.5, 0.0, 0.0, 0.0, 0.0])
    for q in range(n):
        qf = rng.normal(size=Q_DIM)
        d = rng.normal(size=(DOCS, D_DIM))
        clicks = np.exp(d[:, 4] + 2.0)  # heavy tailed counter
        length = 400 + 120 * d[:, 5]
        u = d @ w + 0.6 * d[:, 0] * qf[0] + 0.5 * d[:, 4] + 0.3 * rng.normal(size=DOCS)
        level = 6.0 * qf[1] * qf[2] + 4.0 * np.sin(3 * qf[3])
        d[:, 4], d[:, 5] = clicks, length
        qid += [q] * DOCS
        feats.append(np.hstack([np.repeat(qf[None], DOCS, 0), d]))
        grades.append(u + level)
    return np.array(qid), np.vstack(feats).astype("float32"), np.concatenate(grades).astype("float32")


q_tr, x_tr, y_tr = make_log(N_QUERIES)
q_va, x_va, y_va = make_log(120)
mu, sd = x_tr.mean(0), x_tr.std(0)
x_tr = (x_tr - mu) / sd
x_va = (x_va - mu) / sd

x_tr, y_tr, q_tr = torch.from_numpy(x_tr), torch.from_numpy(y_tr), torch.from_numpy(q_tr)
x_va, y_va = torch.from_numpy(x_va), torch.from_numpy(y_va).view(-1, DOCS)

net = nn.Sequential(nn.Linear(Q_DIM + D_DIM, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.2, momentum=0.9)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=320)


def pair_loss(s, y, q):
    diff = s[:, None] - s[None, :]
    better = (y[:, None] > y[None, :]) & (q[:, None] == q[None, :])
    return nn.functional.softplus(-diff[better]).mean()


def pair_accuracy():
    with torch.no_grad():
        s = net(x_va).view(-1, DOCS)
    d = (s[:, :, None] - s[:, None, :])[(y_va[:, :, None] > y_va[:, None, :])]
    return (d > 0).float().mean().item()


running = []
for step in range(1, 321):
    qs = torch.randperm(N_QUERIES)[:20]
    rows = (qs[:, None] * DOCS + torch.arange(DOCS)).flatten()
    scores = net(x_tr[rows]).squeeze(1)
    loss = pair_loss(scores, y_tr[rows], q_tr[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    running.append(loss.item())
    if step % 40 == 0:
        print("step %d: pair loss %.4f, val pair accuracy %.3f" % (step, np.mean(running[-40:]), pair_accuracy()))
