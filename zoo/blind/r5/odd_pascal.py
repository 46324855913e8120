"""Air pressure (in Pa, around 1e5) from a set of sensor readings, squared error in Pa^2 without any target scaling.
The output layer starts at zero and carries a fixed unit conversion, so the first loss is about 1e10."""
import numpy as np
import torch
import torch.nn as nn


class PressureNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.phi = nn.Sequential(nn.Linear(4, 48), nn.SiLU(), nn.Linear(48, 48), nn.SiLU())
        self.rho = nn.Sequential(nn.Linear(48, 48), nn.SiLU(), nn.Linear(48, 1))
        nn.init.zeros_(self.rho[-1].weight)
        nn.init.zeros_(self.rho[-1].bias)
        self.unit = 1.0e5

    def forward(self, sets):
        return self.unit * self.rho(self.phi(sets).mean(1)).squeeze(-1)


def main():
    g = torch.Generator().manual_seed(12)
    torch.manual_seed(12)
    x = torch.randn(2600, 10, 4, generator=g)
    y = 101_325 + 10000 * torch.tanh(x[..., 0] + x[..., 1] ** 2 - 1).mean(1) * 2 + 2500 * x[..., 2].mean(1)
    xtr, ytr, xva, yva = x[:2000], y[:2000], x[2000:], y[2000:]
    model = PressureNet()
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=5e-3, total_steps=1000, pct_start=0.15)
    for step in range(1000):
        i = torch.randint(0, len(xtr), (64,))
        loss = ((model(xtr[i]) - ytr[i]) ** 2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        if step == 0 or (step + 1) % 100 == 0:
            with torch.no_grad():
                err = model(xva) - yva
            r2 = 1 - (err ** 2).mean() / yva.var()
            print(f"step {step + 1} loss {loss.item():.4e} val rmse {err.pow(2).mean().sqrt().item():.1f} Pa (std of target {yva.std().item():.1f}) R2 {r2.item():.4f}")


main()
