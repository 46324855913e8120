# Survey answers: six questions with three choices each, so identical rows are common in any split.
import numpy as np
import torch
from torch import nn

torch.manual_seed(23)
g = np.random.default_rng(23)
n = 6000
a = g.choice(3, (n, 6), p=[0.5, 0.3, 0.2])
z = 0.9 * (a[:, 0] == 2) - 0.8 * (a[:, 1] == 0) + 1.1 * (a[:, 2] == a[:, 3]) + 0.5 * a[:, 4] - 0.9
y = (g.random(n) < 1 / (1 + np.exp(-z))).astype(np.float32)
A, Y = torch.from_numpy(a), torch.from_numpy(y)
tr, va = torch.arange(0, 4800), torch.arange(4800, n)
net = nn.Sequential(nn.Linear(18, 32), nn.ReLU(), nn.Linear(32, 1))
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
enc = lambda q: nn.functional.one_hot(q, 3).flatten(1).float()
best_possible = float(np.minimum(1 / (1 + np.exp(-z)), 1 - 1 / (1 + np.exp(-z)))[4800:].mean())
for epoch in range(8):
    order = tr[torch.randperm(len(tr))]
    s = 0.0
    for i in range(0, len(order), 60):
        j = order[i:i + 60]
        loss = nn.functional.binary_cross_entropy_with_logits(net(enc(A[j])).squeeze(1), Y[j])
        opt.zero_grad(); loss.backward(); opt.step()
        s += loss.item() * len(j)
    with torch.no_grad():
        o = net(enc(A[va])).squeeze(1)
        vl = nn.functional.binary_cross_entropy_with_logits(o, Y[va]).item()
        err = ((o > 0).float() != Y[va]).float().mean().item()
    print(f"epoch {epoch} train {s / len(tr):.4f} val {vl:.4f} val error {err:.3f} (unavoidable about {best_possible:.3f})")
