"""Planar-style affine flow on data with a tiny spread."""
import math
import torch
import torch.nn as nn

torch.manual_seed(3)
N = 1500
a = 0.02 * torch.randn(N)
x = torch.stack([a, 4 * a ** 2 * 10 + 0.002 * torch.randn(N)], 1)
train, val = x[:1200], x[1200:]


class Flow(nn.Module):
    def __init__(self):
        super().__init__()
        self.log_scale = nn.Parameter(torch.zeros(2))
        self.shift = nn.Parameter(torch.zeros(2))
        self.cond = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 2))

    def log_prob(self, x):
        u = (x - self.shift) * self.log_scale.exp()
        s, t = self.cond(u[:, :1]).unbind(1)
        z2 = u[:, 1] * s.exp() + t
        logdet = self.log_scale.sum() + s
        return -0.5 * (u[:, 0] ** 2 + z2 ** 2) - math.log(2 * math.pi) + logdet


flow = Flow()
opt = torch.optim.Adam([{"params": [flow.log_scale, flow.shift], "lr": 5e-2}, {"params": flow.cond.parameters(), "lr": 1e-2}])
sched = torch.optim.lr_scheduler.ExponentialLR(opt, 0.93)
for epoch in range(40):
    for idx in torch.randperm(len(train)).split(120):
        nll = -flow.log_prob(train[idx]).mean()
        opt.zero_grad()
        nll.backward()
        nn.utils.clip_grad_norm_(flow.parameters(), 20.0)
        opt.step()
    sched.step()
    if epoch % 5 == 4:
        with torch.no_grad():
            print(f"epoch {epoch + 1} nll train {nll.item():.3f} val {-flow.log_prob(val).mean().item():.3f}")
ideal = math.log(0.02) + math.log(0.002) + math.log(2 * math.pi) + 1
print(f"entropy of the source {ideal:.3f}")
