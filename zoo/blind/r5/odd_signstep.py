"""Self-training with an own optimizer class (sign momentum with decoupled decay) instead of torch.optim classes."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import make_moons
from torch.optim import Optimizer


class SignMomentum(Optimizer):
    def __init__(self, params, lr=1e-3, b1=0.9, b2=0.98, wd=0.0):
        super().__init__(params, dict(lr=lr, b1=b1, b2=b2, wd=wd))

    @torch.no_grad()
    def step(self, closure=None):
        for gr in self.param_groups:
            for p in gr["params"]:
                if p.grad is None:
                    continue
                st = self.state[p]
                if not st:
                    st["m"] = torch.zeros_like(p)
                m = st["m"]
                p.mul_(1 - gr["lr"] * gr["wd"])
                p.sub_(gr["lr"] * torch.sign(gr["b1"] * m + (1 - gr["b1"]) * p.grad))
                m.mul_(gr["b2"]).add_(p.grad, alpha=1 - gr["b2"])


torch.manual_seed(1)
X, Y = make_moons(1600, noise=0.15, random_state=1)
X = torch.tensor((X - X.mean(0)) / X.std(0), dtype=torch.float32)
Y = torch.tensor(Y)
lab = torch.cat([torch.where(Y[:1000] == c)[0][:40] for c in (0, 1)])
pool, test = torch.arange(1000), torch.arange(1000, 1600)
net = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
opt = SignMomentum(net.parameters(), lr=1e-3, wd=0.1)
for step in range(1, 601):
    for g in opt.param_groups:
        g["lr"] = 1e-3 * (1 - 0.9 * step / 600)
    u = X[pool[torch.randint(0, 1000, (96,))]]
    out_l = net(X[lab] + 0.05 * torch.randn(len(lab), 2))
    with torch.no_grad():
        soft = net(u + 0.05 * torch.randn_like(u)).softmax(1)
        conf, hard = soft.max(1)
    out_u = net(u + 0.15 * torch.randn_like(u))
    weight = min(1.0, step / 200)
    loss = F.cross_entropy(out_l, Y[lab]) + weight * ((conf > 0.95) * F.cross_entropy(out_u, hard, reduction="none")).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 100 == 0:
        with torch.no_grad():
            acc = (net(X[test]).argmax(1) == Y[test]).float().mean().item()
        print(f"step {step} loss {loss.item():.4f} confident {np.mean((conf > 0.95).numpy()):.2f} test acc {acc:.4f}")
