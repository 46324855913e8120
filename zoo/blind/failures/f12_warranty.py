"""Time-to-failure of units with a failure-free period: three-parameter Weibull, all parameters from covariates."""
import torch
import torch.nn as nn

torch.manual_seed(33)


def simulate(n):
    x = torch.randn(n, 5)
    loc = 1.0 + 0.3 * torch.tanh(x[:, 2])
    scale = torch.exp(0.5 + 0.4 * x[:, 0])
    e = -torch.log(torch.rand(n).clamp(1e-6, 1))
    t = loc + scale * e ** (1 / 1.6)
    c = 0.5 + torch.rand(n) * 6
    return x, torch.minimum(t, c), (t <= c).float()


class Weibull3(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(5, 24), nn.Tanh())
        self.head = nn.Linear(24, 3)
        nn.init.normal_(self.head.weight, std=0.01)

    def forward(self, x):
        loc, log_scale, log_k = self.head(self.trunk(x)).unbind(1)
        return loc, torch.exp(log_scale), torch.exp(log_k)


def nll(loc, scale, k, t, event):
    z = (t - loc) / scale
    zero = torch.zeros_like(z)
    cumulative = torch.where(z > 0, z ** k, zero)
    log_hazard = torch.log(k / scale) + (k - 1) * torch.log(z.clamp(min=1e-3))
    return (cumulative - event * log_hazard).mean()


x, t, event = simulate(1200)
model = Weibull3()
opt = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(12):
    perm = torch.randperm(len(x))
    total = 0.0
    for idx in perm.split(60):
        loss = nll(*model(x[idx]), t[idx], event[idx])
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 2.0)
        opt.step()
        total += loss.item()
    print(f"epoch {epoch + 1}: nll {total / 20:.4f}")
