"""Fit u(x) with u(0)=u(1)=0 as a soft constraint; penalty weight is increased over time."""
import torch
import torch.nn as nn

STEPS = 400
LR = 0.02
PENALTY_START = 0.1
PENALTY_RATE = 1.03

torch.manual_seed(27)


class Field(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(1, width), nn.Tanh(), nn.Linear(width, width), nn.ReLU())
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        return self.head(self.body(x))


net = Field()
opt = torch.optim.SGD(net.parameters(), lr=LR)

x = torch.linspace(0, 1, 80)[:, None]
target = torch.sin(3.14159 * x) + 0.3 + 0.02 * torch.randn_like(x)
edge = torch.tensor([[0.0], [1.0]])

lam = PENALTY_START
for step in range(STEPS):
    fit = ((net(x) - target) ** 2).mean()
    constraint = (net(edge) ** 2).mean()
    loss = fit + lam * constraint
    opt.zero_grad()
    loss.backward()
    opt.step()
    lam *= PENALTY_RATE
    if step % 20 == 0:
        print(f"{step:4d} fit {fit.item():.4f} constraint {constraint.item():.3e} total {loss.item():.4f}")

with torch.no_grad():
    print("u(0), u(1) =", [round(v, 5) for v in net(edge).flatten().tolist()])
