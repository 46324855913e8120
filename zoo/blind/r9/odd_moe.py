"""Mixture of experts: noisy top-1 routing with a load-balancing term on piecewise regression."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(6)
E, D, STEPS = 6, 8, 1500
gen = torch.Generator().manual_seed(0)
centres = torch.randn(E, D, generator=gen) * 2
maps = torch.randn(E, D, generator=gen)


def draw(n):
    r = torch.randint(0, E, (n,))
    x = centres[r] + 0.6 * torch.randn(n, D)
    near = torch.cdist(x, centres).argmin(1)
    return x, (maps[near] * x).sum(1) + 0.3 * torch.randn(n)


class MoE(nn.Module):
    def __init__(self, h=24):
        super().__init__()
        self.gate = nn.Linear(D, E, bias=False)
        self.experts = nn.ModuleList([nn.Sequential(nn.Linear(D, h), nn.ReLU(), nn.Linear(h, 1)) for _ in range(E)])

    def forward(self, x):
        z = self.gate(x)
        if self.training:
            z = z + 0.5 * torch.randn_like(z)
        p = z.softmax(1)
        w, k = p.max(1)
        y = torch.zeros(len(x))
        for e, f in enumerate(self.experts):
            m = k == e
            if m.any():
                y[m] = f(x[m]).squeeze(1)
        y = y * w / w.detach()
        load = F.one_hot(k, E).float().mean(0)
        return y, E * (load * p.mean(0)).sum(), load


model = MoE()
opt = torch.optim.AdamW(model.parameters(), lr=5e-3)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, STEPS)
xv, yv = draw(2000)
fit, aux_sum = 0.0, 0.0
for step in range(1, STEPS + 1):
    model.train()
    x, y = draw(128)
    out, aux, _ = model(x)
    mse = F.mse_loss(out, y)
    loss = mse + 0.1 * aux
    opt.zero_grad()
    loss.backward()
    opt.step()
    sched.step()
    fit += mse.item() / 150
    aux_sum += aux.item() / 150
    if step % 150 == 0:
        model.eval()
        with torch.no_grad():
            out, _, load = model(xv)
        r2 = 1 - F.mse_loss(out, yv) / yv.var()
        print(f"step {step:5d} mse {fit:.3f} balance {aux_sum:.3f} | val mse {F.mse_loss(out, yv):.3f} R2 {r2:.3f} load "
              + " ".join(f"{v:.2f}" for v in load))
        fit = aux_sum = 0.0
