"""Credit scoring with a demographic-parity constraint (primal-dual training)."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(71)
g = torch.Generator().manual_seed(71)


def applicants(n):
    group = (torch.rand(n, generator=g) < 0.5).float()
    income = torch.randn(n, generator=g) + 0.9 * group
    debt = torch.randn(n, generator=g) - 0.4 * group
    years = torch.rand(n, generator=g) * 3
    logit = 1.2 * income - 0.8 * debt + 0.3 * years
    repay = (torch.rand(n, generator=g) < torch.sigmoid(logit)).float()
    return torch.stack([income, debt, years], 1), repay, group


class Score(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(3, 24), nn.ReLU(), nn.Linear(24, 1))

    def forward(self, x):
        return self.f(x).squeeze(-1)


class Dual(nn.Module):
    def __init__(self):
        super().__init__()
        self.log_price = nn.Parameter(torch.tensor(-4.0))

    @property
    def price(self):
        return self.log_price.exp()


def parity_gap(p, group):
    a = (p * group).sum() / group.sum()
    b = (p * (1 - group)).sum() / (1 - group).sum()
    return (a - b).pow(2) + p.var()


ALLOWED = -0.02
x, y, grp = applicants(4000)
model, dual = Score(), Dual()
primal = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.8)
ascent = torch.optim.SGD(dual.parameters(), lr=3.0, maximize=True)

for step in range(270):
    pick = torch.randint(0, len(x), (128,), generator=g)
    logit = model(x[pick])
    risk = F.binary_cross_entropy_with_logits(logit, y[pick])
    gap = parity_gap(torch.sigmoid(logit), grp[pick])
    excess = gap - ALLOWED
    lagrangian = risk + dual.price * excess
    primal.zero_grad()
    ascent.zero_grad()
    lagrangian.backward()
    primal.step()
    ascent.step()
    if step % 15 == 0:
        print(f"step {step:4d} objective {lagrangian.item():.4f} risk {risk.item():.4f} gap {gap.item():.4f}")
