"""One-step forecaster: nonlinear part on lags + sparse linear part on exogenous signals."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

rng = np.random.RandomState(4)
torch.manual_seed(4)
T, LAGS, EXO = 1500, 12, 8


def build_series():
    t = np.arange(T)
    s = np.sin(2 * np.pi * t / 24) + 0.4 * np.sin(2 * np.pi * t / 7) + 0.1 * rng.randn(T)
    exo = rng.randn(T, EXO)
    X = np.stack([s[i - LAGS:i] for i in range(LAGS, T)])
    return (torch.tensor(X, dtype=torch.float32), torch.tensor(exo[LAGS:], dtype=torch.float32),
            torch.tensor(s[LAGS:], dtype=torch.float32))


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.core = nn.Sequential(nn.Linear(LAGS, 32), nn.Tanh(), nn.Linear(32, 16))
        self.exo = nn.Linear(EXO, 16, bias=False)
        self.head = nn.Linear(16, 1)
        self.register_buffer("u", F.normalize(torch.randn(16), dim=0))

    def forward(self, lags, exo):
        return self.head(torch.tanh(self.core(lags) + self.exo(exo))).squeeze(1)

    @torch.no_grad()
    def shrink(self, lam):
        w = self.exo.weight
        w.copy_(w.sign() * F.relu(w.abs() - lam))

    @torch.no_grad()
    def lipschitz(self, iters=5):
        w = self.exo.weight
        for _ in range(iters):
            v = F.normalize(w.t() @ self.u, dim=0)
            self.u.copy_(F.normalize(w @ v, dim=0))
        sigma = self.u @ w @ v
        w.div_(sigma)


lags, exo, target = build_series()
model = Forecaster()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
n = len(target)
for epoch in range(8):
    order = rng.permutation(n)
    losses = []
    for start in range(0, n - 31, 31):
        b = torch.from_numpy(order[start:start + 31])
        loss = F.mse_loss(model(lags[b], exo[b]), target[b])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        model.shrink(lam=2.5e-3)
        losses.append(loss.item())
    if epoch >= 3:
        model.lipschitz()
    print(f"epoch {epoch}: train mse {np.mean(losses):.5f} (last {losses[-1]:.5f})")
