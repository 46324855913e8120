import torch
import torch.nn as nn

torch.manual_seed(32)
FEAT, BATCH, STEPS = 8, 32, 320


def seasons(n):
    gen = torch.Generator().manual_seed(15)
    x = torch.randn(n, FEAT, generator=gen).clamp(-2, 2)
    for i in (7110, 7127, 8240):
        x[i] = 0.0
        x[i, 0] = -14.0
    level = (4.0 + 0.7 * x[:, 0] + 0.4 * x[:, 1] * x[:, 2]).clamp(min=0.0)
    rain = level ** 0.6 + 0.05 * torch.randn(n, generator=gen)
    return x, rain


class Gauge(nn.Module):
    def __init__(self):
        super().__init__()
        self.trend = nn.Linear(FEAT, 1)
        self.detail = nn.Sequential(nn.Linear(FEAT, 32), nn.Tanh(), nn.Linear(32, 1))
        nn.init.constant_(self.trend.bias, 3.0)
        nn.init.normal_(self.trend.weight, std=0.05)

    def forward(self, x):
        level = (self.trend(x) + self.detail(x))[:, 0]
        return torch.where(level > 0, level ** 0.6, torch.zeros_like(level))


x, rain = seasons(BATCH * STEPS)
model = Gauge()
opt = torch.optim.Adam(model.parameters(), lr=5e-3)
losses = []
for step in range(STEPS):
    rows = slice(step * BATCH, (step + 1) * BATCH)
    loss = ((model(x[rows]) - rain[rows]) ** 2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    losses.append(loss.item())
    if step % 20 == 0:
        print(f"step {step} loss {loss.item():.5f}")
print("final", losses[-1])
