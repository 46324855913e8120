"""Point sets of very different size, one set per step (no padding, no batching)."""
import random
import torch
import torch.nn as nn


class SetNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.phi = nn.Sequential(nn.Linear(2, 32), nn.LayerNorm(32), nn.ReLU(), nn.Linear(32, 32))
        self.rho = nn.Sequential(nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 3))

    def forward(self, pts):
        h = self.phi(pts)
        return self.rho(torch.cat([h.amax(0), h.mean(0)]))


def draw():
    k = random.randrange(3)
    n = random.randint(10, 80)
    a = 6.28318 * torch.rand(n)
    if k == 0:
        p = torch.stack([a.cos(), a.sin()], 1)
    elif k == 1:
        p = 2 * torch.rand(n, 2) - 1
    else:
        p = torch.stack([a.cos(), 0.9 * (2 * a).sin()], 1)
    return p + 0.08 * torch.randn(n, 2), torch.tensor(k)


random.seed(5)
torch.manual_seed(5)
test = [draw() for _ in range(400)]
net = SetNet()
opt = torch.optim.Adam(net.parameters(), lr=2e-3, betas=(0.95, 0.999))
sched = torch.optim.lr_scheduler.PolynomialLR(opt, total_iters=2400)
lossf = nn.CrossEntropyLoss()
run = 1.1
for step in range(1, 2401):
    pts, k = draw()
    loss = lossf(net(pts), k)
    opt.zero_grad()
    loss.backward()
    opt.step()
    sched.step()
    run = 0.995 * run + 0.005 * loss.item()
    if step % 400 == 0:
        with torch.no_grad():
            acc = sum((net(p).argmax() == c).item() for p, c in test) / len(test)
        print(f"sample {step} this loss {loss.item():.4f} running {run:.4f} test acc {acc:.3f}")
