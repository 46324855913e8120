"""Three heads with learned task weights (log-variances): the total loss goes below zero. One task is rare (3% positives)."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(19)
A = torch.randn(16, 5)
B = torch.randn(16, 3)
w = torch.randn(16)


def load(n):
    x = torch.randn(n, 16)
    y1 = torch.tanh(x @ A).add(0.05 * torch.randn(n, 5)).argmax(1)
    y2 = (x @ B).argmax(1)
    y3 = ((x @ w) > 7.4).float()
    return x, y1, y2, y3


class Multi(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.h1, self.h2, self.h3 = nn.Linear(64, 5), nn.Linear(64, 3), nn.Linear(64, 1)
        self.log_var = nn.Parameter(torch.zeros(3))

    def forward(self, x):
        z = self.trunk(x)
        return self.h1(z), self.h2(z), self.h3(z).squeeze(1)


tr, va = load(3000), load(1500)
share = tr[3].mean()
print(f"rare task: {share:.3f} positives")
net = Multi()
opt = torch.optim.Adam([{"params": [p for n, p in net.named_parameters() if n != "log_var"], "lr": 3e-3}, {"params": [net.log_var], "lr": 2e-2}])
for ep in range(14):
    for b in torch.randperm(3000).split(100):
        o1, o2, o3 = net(tr[0][b])
        parts = torch.stack([F.cross_entropy(o1, tr[1][b]), F.cross_entropy(o2, tr[2][b]),
                             F.binary_cross_entropy_with_logits(o3, tr[3][b], pos_weight=(1 - share) / share * 0.5)])
        loss = (torch.exp(-net.log_var) * parts + 0.5 * net.log_var).sum()
        opt.zero_grad()
        loss.backward()
        opt.step()
    if ep % 2 == 1:
        with torch.no_grad():
            o1, o2, o3 = net(va[0])
            hit = o3 > 0
            rec = (hit & (va[3] == 1)).sum() / va[3].sum()
            prec = (hit & (va[3] == 1)).sum() / hit.sum().clamp(min=1)
        print(f"ep {ep:2d} total {loss.item():+.3f} parts {[round(v, 3) for v in parts.tolist()]} acc {(o1.argmax(1) == va[1]).float().mean():.3f} "
              f"{(o2.argmax(1) == va[2]).float().mean():.3f} rare recall {rec:.2f} precision {prec:.2f} weights {[round(v, 2) for v in torch.exp(-net.log_var).tolist()]}")
