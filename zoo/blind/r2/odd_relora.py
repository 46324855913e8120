"""ReLoRA: the low-rank update is folded into the weight at intervals, factors and optimizer start again."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(43)


class Lo(nn.Module):
    def __init__(self, lin, r=2):
        super().__init__()
        self.register_buffer("w", lin.weight.detach().clone())
        self.register_buffer("bias", lin.bias.detach().clone())
        self.r = r
        self.restart()

    def restart(self):
        if hasattr(self, "a"):
            self.w += self.b.data @ self.a.data
        self.a = nn.Parameter(torch.randn(self.r, self.w.shape[1]) / self.w.shape[1] ** 0.5)
        self.b = nn.Parameter(torch.zeros(self.w.shape[0], self.r))

    def forward(self, x):
        return F.linear(x, self.w, self.bias) + F.linear(F.linear(x, self.a), self.b)


true = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 4))
with torch.no_grad():
    true[0].weight.mul_(3.0)
    true[2].weight.mul_(4.0)
frozen = [nn.Linear(16, 32), nn.Linear(32, 4)]
model = nn.Sequential(Lo(frozen[0]), nn.Tanh(), Lo(frozen[1]))
x = torch.randn(1500, 16)
xv = torch.randn(400, 16)
with torch.no_grad():
    y, yv = true(x), true(xv)
base = ((yv - y.mean(0)) ** 2).mean().item()
print(f"variance of targets {base:.3f}")
for cycle in range(6):
    if cycle:
        for m in model:
            if isinstance(m, Lo):
                m.restart()
    opt = torch.optim.Adam(model.parameters(), lr=2e-2)
    sched = torch.optim.lr_scheduler.LinearLR(opt, start_factor=0.1, total_iters=10)
    for it in range(80):
        idx = torch.randint(0, 1500, (64,))
        loss = F.mse_loss(model(x[idx]), y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
    with torch.no_grad():
        print(f"cycle {cycle} train {loss.item():.4f} val {F.mse_loss(model(xv), yv).item():.4f}")
