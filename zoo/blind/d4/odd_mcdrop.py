"""Sensor calibration with Monte-Carlo dropout: 30 stochastic passes at validation give a mean and a spread."""
import math

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(40)


def sensors(n):
    x = torch.rand(n, 4) * 2 - 1
    f = torch.sin(3 * x[:, 0]) + x[:, 1] * x[:, 2] + 0.5 * x[:, 3] ** 2
    return x, f + 0.15 * torch.randn(n)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 128), nn.ReLU(), nn.Dropout(0.15), nn.Linear(128, 128), nn.ReLU(), nn.Dropout(0.15), nn.Linear(128, 1))

    def forward(self, x):
        return self.layers(x).squeeze(1)


def stochastic(net, x, passes=30):
    net.train()  # dropout stays on: this is the sampling
    with torch.no_grad():
        draws = torch.stack([net(x) for _ in range(passes)])
    return draws.mean(0), draws.std(0)


x, y = sensors(4000)
xv, yv = sensors(1500)
net = Net()
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 36)
for epoch in range(36):
    net.train()
    tot = 0.0
    for i in torch.randperm(len(x)).split(50):
        loss = (net(x[i]) - y[i]).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        tot += loss.item() * len(i)
    sched.step()
    if epoch % 4 == 3:
        mean, spread = stochastic(net, xv)
        total = torch.sqrt(spread ** 2 + 0.15 ** 2)
        cover = ((yv - mean).abs() < 1.96 * total).float().mean()
        print(f"epoch {epoch + 1:2d} train mse {tot / len(x):.4f} val mse of the mean {(mean - yv).pow(2).mean():.4f} "
              f"spread {spread.mean():.3f} 95% interval covers {cover:.3f}")
far = torch.full((4, 4), 3.0) * torch.tensor([[1.], [-1.], [2.], [-2.]])
print("spread far from the data:", [round(v, 2) for v in stochastic(net, far)[1].tolist()])
