# mixture density network over the next inter-event time; negative log-likelihood of a density
import math
import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

rng = np.random.default_rng(8)
torch.manual_seed(8)


def events(n):
    x = rng.uniform(-1, 1, (n, 2)).astype(np.float32)
    side = rng.random(n) < 1 / (1 + np.exp(-3 * x[:, 1]))
    centre = np.where(side, 0.8 * np.sin(3 * x[:, 0]), -1.0 + 0.3 * x[:, 0])
    y = centre + np.where(side, 0.02, 0.05) * rng.normal(size=n)
    return torch.from_numpy(x), torch.from_numpy(y.astype(np.float32))


class MDN(nn.Module):
    def __init__(self, k=3):
        super().__init__()
        self.k = k
        self.body = nn.Sequential(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh())
        self.head = nn.Linear(64, 3 * k)

    def forward(self, x):
        w, m, s = self.head(self.body(x)).chunk(3, dim=-1)
        return w.log_softmax(-1), m, s.clamp(-5, 3)

    def nll(self, x, y):
        lw, m, s = self(x)
        z = (y[:, None] - m) / s.exp()
        return -torch.logsumexp(lw - 0.5 * z ** 2 - s - 0.5 * math.log(2 * math.pi), dim=-1).mean()


xtr, ytr = events(3000)
xva, yva = events(1000)
loader = DataLoader(TensorDataset(xtr, ytr), batch_size=100, shuffle=True)
net = MDN()
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=25)
for epoch in range(1, 26):
    tot = 0.0
    for x, y in loader:
        loss = net.nll(x, y)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 2.0)
        opt.step()
        tot += loss.item()
    sched.step()
    if epoch % 5 == 0:
        with torch.no_grad():
            v = net.nll(xva, yva).item()
            lw, m, s = net(xva)
            best = (m.gather(1, lw.argmax(1, keepdim=True)).squeeze(1) - yva).abs().median().item()
        print(f"epoch {epoch} train nll {tot / len(loader):.4f} val nll {v:.4f} median abs err of main mode {best:.4f}")
