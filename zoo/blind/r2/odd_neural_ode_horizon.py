"""Learns a vector field from one noisy trajectory with unrolled RK4."""
import torch
from torch import nn

torch.manual_seed(16)
dt, N = 0.1, 120


def true_field(s):
    x, v = s.unbind(-1)
    return torch.stack([v, -x - 0.2 * v - 0.5 * x ** 3], -1)


def rk4(f, s):
    k1 = f(s); k2 = f(s + dt / 2 * k1); k3 = f(s + dt / 2 * k2); k4 = f(s + dt * k3)
    return s + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


states = [torch.tensor([1.5, 0.0])]
for _ in range(N):
    states.append(rk4(true_field, states[-1]))
clean = torch.stack(states)
traj = clean + 0.01 * torch.randn_like(clean)

field = nn.Sequential(nn.Linear(2, 40), nn.Tanh(), nn.Linear(40, 2))
nn.init.zeros_(field[2].weight)
nn.init.zeros_(field[2].bias)
opt = torch.optim.Adam(field.parameters(), lr=2e-2)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 240)
for step in range(1, 241):
    horizon = 1 + step // 80
    i = torch.randint(0, N - horizon, (32,))
    s, loss = traj[i], 0.0
    for h in range(1, horizon + 1):
        s = rk4(field, s)
        loss = loss + (s - traj[i + h]).square().sum(-1).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    sched.step()
    if step % 30 == 0:
        print(f"step {step} horizon {horizon} loss {loss.item():.5f}")
with torch.no_grad():
    s, path = clean[0], []
    for _ in range(N):
        s = rk4(field, s)
        path.append(s)
    rmse = (torch.stack(path) - clean[1:]).square().mean().sqrt()
print(f"free rollout over the whole trajectory: rmse {rmse:.4f} (signal {clean.std():.3f})")
