"""Adafactor-like optimizer written here: factored second moments, each step relative to the size of its weight (biases move by about 1e-5)."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(2)


class Factored(torch.optim.Optimizer):
    def __init__(self, params, lr=3e-2, beta=0.98, floor=1e-3):
        super().__init__(params, dict(lr=lr, beta=beta, floor=floor))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                s, g = self.state[p], p.grad
                if not s:
                    s["t"] = 0
                    s["row"] = torch.zeros(p.shape[:-1] if p.dim() > 1 else p.shape)
                    s["col"] = torch.zeros(p.shape[-1:])
                s["t"] += 1
                b = min(group["beta"], 1 - s["t"] ** -0.8)
                sq = g * g + 1e-30
                if p.dim() > 1:
                    s["row"].mul_(b).add_(sq.mean(-1), alpha=1 - b)
                    s["col"].mul_(b).add_(sq.mean(0), alpha=1 - b)
                    v = s["row"][:, None] * s["col"][None] / s["row"].mean()
                else:
                    s["row"].mul_(b).add_(sq, alpha=1 - b)
                    v = s["row"]
                u = g / v.sqrt()
                u = u / max(1.0, u.pow(2).mean().sqrt().item())
                size = max(group["floor"], p.pow(2).mean().sqrt().item())
                p.add_(u, alpha=-group["lr"] * size)


def data(n):
    x = torch.randint(0, 40, (n, 8))
    y = ((x < 20).sum(1) - 2).clamp(0, 4) * 3 // 4
    return x, y


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(40, 16)
        self.net = nn.Sequential(nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 4))
        nn.init.normal_(self.emb.weight, std=0.3)

    def forward(self, x):
        return self.net(self.emb(x).flatten(1))


x_tr, y_tr = data(6000)
x_va, y_va = data(1000)
net = Net()
opt = Factored(net.parameters(), lr=1.5e-2)
for epoch in range(14):
    for g in opt.param_groups:
        g["lr"] = 1.5e-2 * (1 - epoch / 15)
    run = 0.0
    for idx in torch.randperm(len(x_tr)).split(64):
        loss = F.cross_entropy(net(x_tr[idx]), y_tr[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        run += loss.item() * len(idx)
    with torch.no_grad():
        out = net(x_va)
    print(f"epoch {epoch:2d} step for biases ~{opt.param_groups[0]['lr'] * 1e-3:.1e} train {run / len(x_tr):.4f} "
          f"val {F.cross_entropy(out, y_va):.4f} acc {(out.argmax(1) == y_va).float().mean():.3f}")
