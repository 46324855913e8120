import torch
from torch import nn

torch.manual_seed(6)


def vdp(x, mu=1.5):
    return torch.stack([x[..., 1], mu * (1 - x[..., 0] ** 2) * x[..., 1] - x[..., 0]], -1)


def simulate(x0, n, dt=0.01):
    xs = [x0]
    for _ in range(n):
        k1 = vdp(x0)
        k2 = vdp(x0 + 0.5 * dt * k1)
        x0 = x0 + dt * k2
        xs.append(x0)
    return torch.stack(xs, 1)


class PolyODE(nn.Module):
    """dx/dt as a learned combination of monomials up to degree three."""

    def __init__(self):
        super().__init__()
        self.coef = nn.Parameter(0.05 * torch.randn(9, 2))

    def library(self, x):
        a, b = x[..., 0], x[..., 1]
        return torch.stack([a, b, a * a, a * b, b * b, a ** 3, a * a * b, a * b * b, b ** 3], -1)

    def rollout(self, x, n, dt):
        out = [x]
        for _ in range(n):
            x = x + dt * (self.library(x) @ self.coef)
            out.append(x)
        return torch.stack(out, 1)


traj = simulate(torch.rand(96, 2) * 4 - 2, 1200)
model = PolyODE()
opt = torch.optim.Adam(model.parameters(), lr=0.03)
phases = [dict(steps=110, n=8, stride=2), dict(steps=90, n=24, stride=50)]
k = 0
for ph in phases:
    for _ in range(ph["steps"]):
        i = torch.randint(0, 96, (32,))
        s = torch.randint(0, 1200 - ph["n"] * ph["stride"], (1,)).item() if ph["n"] * ph["stride"] < 1200 else 0
        seg = traj[i, s:s + ph["n"] * ph["stride"] + 1:ph["stride"]]
        pred = model.rollout(seg[:, 0], seg.shape[1] - 1, 0.01 * ph["stride"])
        loss = ((pred - seg) ** 2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if k % 10 == 0:
            print(k, loss.item())
        k += 1
