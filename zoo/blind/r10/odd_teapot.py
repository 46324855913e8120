"""Survival analysis: Weibull likelihood with right censoring; two thirds of the end points are never observed."""
import numpy as np
import torch
import torch.nn as nn

torch.set_num_threads(1)
torch.manual_seed(9)


def pumps(n, seed):
    r = np.random.default_rng(seed)
    x = r.normal(size=(n, 8))
    risk = 0.8 * x[:, 0] - 0.6 * x[:, 1] + 0.5 * x[:, 2] * x[:, 3] + 0.4 * np.abs(x[:, 4])
    shape = 1.6
    event = 9.0 * np.exp(-risk / shape) * r.weibull(shape, n)
    censor = r.uniform(0.5, 9.0, n)
    t, d = np.minimum(event, censor), event <= censor
    f = lambda v: torch.tensor(v, dtype=torch.float32)
    return f(x), f(t), f(d), f(risk)


class Weibull(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 48), nn.SiLU(), nn.Linear(48, 48), nn.SiLU(), nn.Linear(48, 1))
        self.log_shape = nn.Parameter(torch.zeros(()))

    def nll(self, x, t, d):
        """Events contribute the log density, censored cases the log survival."""
        log_scale = self.net(x).squeeze(1) + 1.5
        k = self.log_shape.exp()
        z = k * (t.log() - log_scale)
        log_hazard = self.log_shape - t.log() + z
        return (z.exp() - d * log_hazard).mean()


def concordance(score, t, d):
    """Share of comparable pairs ranked correctly (higher score: earlier event)."""
    earlier = (t[:, None] < t[None, :]) & (d[:, None] > 0)
    right = (score[:, None] > score[None, :]).float() + 0.5 * (score[:, None] == score[None, :])
    return (right * earlier).sum().item() / earlier.sum().item()


x, t, d, _ = pumps(5000, 1)
xv, tv, dv, _ = pumps(1000, 2)
xt, tt, dt, risk = pumps(1500, 3)
print(f"{len(x)} pumps, {100 * (1 - d.mean().item()):.0f}% censored")
model = Weibull()
opt = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)
best, state, patience = float("inf"), None, 0
for e in range(1, 61):
    total = 0.0
    for idx in torch.randperm(len(x)).split(100):
        loss = model.nll(x[idx], t[idx], d[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item() * len(idx)
    with torch.no_grad():
        v = model.nll(xv, tv, dv).item()
    if v < best - 1e-4:
        best, patience = v, 0
        state = {k: p.clone() for k, p in model.state_dict().items()}
    else:
        patience += 1
    if e % 3 == 0 or patience == 12:
        print(f"epoch {e:3d}  train nll {total / len(x):.4f}  val nll {v:.4f}  shape {model.log_shape.exp().item():.3f}")
    if patience == 12:
        break
model.load_state_dict(state)
with torch.no_grad():
    score = -model.net(xt).squeeze(1)
    print(f"test nll {model.nll(xt, tt, dt).item():.4f}  concordance {concordance(score, tt, dt):.3f} "
          f"(true risk {concordance(risk, tt, dt):.3f})  shape {model.log_shape.exp().item():.2f} (true 1.60)")
