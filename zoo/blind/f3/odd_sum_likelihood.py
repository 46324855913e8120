import math
import torch
import torch.nn as nn


class Gauss(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(d, 32), nn.Tanh(), nn.Linear(32, 2))

    def forward(self, x):
        m, s = self.net(x).chunk(2, 1)
        return m, s.clamp(-8, 8)


def total_nll(m, s, y):
    return (0.5 * math.log(2 * math.pi) + s + 0.5 * ((y - m) / s.exp()) ** 2).sum()


torch.manual_seed(2)
x = torch.rand(4000, 3) * 2 - 1
y = 25 * x[:, :1] + 0.001 * torch.randn(4000, 1) + 40
y = y / 10
model = Gauss(3)
with torch.no_grad():
    model.net[-1].bias[1] = -3.0
opt = torch.optim.Adam(model.parameters(), lr=2e-2)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 400)
for it in range(400):
    m, s = model(x)
    loss = total_nll(m, s, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    sched.step()
    if it % 40 == 0:
        print(f"it {it} total nll {loss.item():.1f} rmse {(m - y).pow(2).mean().sqrt().item():.4f}")
