import torch
import torch.nn as nn

torch.manual_seed(50)


class RunningScaler:
    """Keeps totals over everything seen so far and standardises the channels."""

    def __init__(self, dim):
        self.n = 0
        self.s = torch.zeros(dim)
        self.s2 = torch.zeros(dim)

    def __call__(self, x):
        self.n += x.shape[0]
        self.s += x.sum(0)
        self.s2 += (x * x).sum(0)
        mean = self.s / self.n
        var = self.s2 / self.n - mean ** 2
        return (x - mean) / torch.sqrt(var + 1e-6)


def stream(n):
    load = torch.rand(n, 1)
    temp = 60 + 25 * load + 2 * torch.randn(n, 1)
    speed = 1500 + 300 * load + 20 * torch.randn(n, 1)
    pressure = 1013.25 + 0.45 * torch.randn(n, 1)          # hPa
    vib = load ** 2 + 0.05 * torch.randn(n, 1)
    return torch.cat([temp, speed, pressure, vib], 1)


ae = nn.Sequential(nn.Linear(4, 16), nn.ELU(), nn.Linear(16, 2), nn.Linear(2, 16), nn.ELU(), nn.Linear(16, 4))
opt = torch.optim.Adam(ae.parameters(), lr=2e-3)
scaler = RunningScaler(4)
for step in range(380):
    x = scaler(stream(32))
    loss = nn.functional.smooth_l1_loss(ae(x), x)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 20 == 0:
        print(step, f"{loss.item():.4f}")
