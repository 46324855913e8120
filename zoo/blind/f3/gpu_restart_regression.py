import torch
import torch.nn as nn

torch.manual_seed(22)
device = "cuda" if torch.cuda.is_available() else "cpu"


class WarmRestart:
    def __init__(self, optimizer, base, period, mult):
        self.optimizer, self.base, self.period, self.mult = optimizer, base, period, mult
        self.n = 0

    def step(self):
        self.n += 1
        k, pos = divmod(self.n, self.period)
        peak = self.base * self.mult ** k
        for g in self.optimizer.param_groups:
            g["lr"] = peak * (1 - 0.9 * pos / self.period)


def friedman(n):
    x = torch.rand(n, 10)
    y = 10 * torch.sin(3.14159 * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3] + 5 * x[:, 4]
    return x, (y + torch.randn(n)) / 5


x, y = friedman(3000)
xv, yv = friedman(500)
x, y, xv, yv = x.to(device), y.to(device), xv.to(device), yv.to(device)
net = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1)).to(device)
optimizer = torch.optim.SGD(net.parameters(), lr=0.005, momentum=0.9)
schedule = WarmRestart(optimizer, 0.005, 80, 4.0)
for step in range(400):
    idx = torch.randint(0, len(x), (64,))
    with torch.autocast(device, dtype=torch.bfloat16):
        pred = net(x[idx]).squeeze(1)
    loss = (pred.float() - y[idx]).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    if (step + 1) % 40 == 0:
        with torch.no_grad():
            v = (net(xv).squeeze(1) - yv).pow(2).mean().item()
        print(f"step {step + 1} train {loss.item():.4f} val {v:.4f} lr {optimizer.param_groups[0]['lr']:.4f}")
