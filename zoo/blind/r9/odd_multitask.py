"""Three tasks on one trunk, weighted by learned homoscedastic uncertainty (two regressions, one classification)."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(5)
g = torch.Generator().manual_seed(1)
A, B = torch.randn(12, 4, generator=g), torch.randn(12, 5, generator=g)


def draw(n):
    x = torch.randn(n, 12)
    h = torch.tanh(x @ A * 0.5)
    small = 0.02 * (h[:, 0] * h[:, 1] + 0.1 * torch.randn(n))
    large = 40 * (h[:, 2] + h[:, 3] ** 2 + 0.3 * torch.randn(n))
    label = (x @ B + 0.5 * torch.randn(n, 5)).argmax(1)
    return x, small, large, label


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(12, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU())
        self.heads = nn.ModuleList([nn.Linear(96, 1), nn.Linear(96, 1), nn.Linear(96, 5)])
        self.s = nn.Parameter(torch.tensor([-4.0, 6.0, 0.0]))

    def forward(self, x):
        h = self.trunk(x)
        return 0.1 * self.heads[0](h).squeeze(1), 40 * self.heads[1](h).squeeze(1), self.heads[2](h)


net = Net()
opt = torch.optim.Adam([{"params": list(net.trunk.parameters()) + list(net.heads.parameters()), "lr": 2e-3},
                        {"params": [net.s], "lr": 1e-2}])
data, val = draw(8000), draw(2000)
for epoch in range(1, 21):
    tot = torch.zeros(4)
    if epoch == 15:
        for group in opt.param_groups:
            group["lr"] *= 0.2
    for idx in torch.randperm(8000).split(128):
        x, a, b, c = (v[idx] for v in data)
        pa, pb, pc = net(x)
        raw = torch.stack([F.mse_loss(pa, a), F.mse_loss(pb, b), F.cross_entropy(pc, c)])
        k = torch.tensor([0.5, 0.5, 1.0])
        loss = (k * torch.exp(-net.s) * raw + 0.5 * net.s).sum()
        opt.zero_grad()
        loss.backward()
        opt.step()
        tot += torch.cat([loss.detach()[None], raw.detach()]) * len(idx) / 8000
    with torch.no_grad():
        pa, pb, pc = net(val[0])
        r2a, r2b = 1 - F.mse_loss(pa, val[1]) / val[1].var(), 1 - F.mse_loss(pb, val[2]) / val[2].var()
        acc = (pc.argmax(1) == val[3]).float().mean()
    if epoch % 2 == 0:
        print(f"epoch {epoch:2d} total {tot[0]:+.3f} raw {tot[1]:.2e} {tot[2]:.1f} {tot[3]:.3f} log-var "
              + " ".join(f"{v:+.2f}" for v in net.s.tolist()) + f" | val R2 small {r2a:.3f} large {r2b:.3f} acc {acc:.3f}")
