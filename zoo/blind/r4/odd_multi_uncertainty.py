"""Two heads with learned task weights (log-variances): the total loss crosses zero and becomes negative."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(1)
S = 16
g = torch.arange(S).float()


def scene(n):
    vertical = torch.randint(0, 2, (n,))
    pos = torch.rand(n) * 10 + 3
    d = (g[None] - pos[:, None]).abs()
    line = torch.exp(-d ** 2 / 2)
    img = torch.where(vertical[:, None, None] == 1, line[:, None, :].expand(n, S, S), line[:, :, None].expand(n, S, S))
    return (img + 0.3 * torch.randn(n, S, S)).unsqueeze(1), vertical, (pos - 8) / 5


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Conv2d(1, 8, 3, stride=2), nn.ReLU(), nn.Conv2d(8, 16, 3), nn.ReLU(), nn.Flatten())
        self.kind, self.where = nn.LazyLinear(2), nn.LazyLinear(1)
        self.log_var = nn.Parameter(torch.zeros(2))

    def forward(self, x):
        h = self.trunk(x)
        return self.kind(h), self.where(h)[:, 0]


x, k, p = scene(700)
vx, vk, vp = scene(200)
net = Net()
net(x[:2])
opt = torch.optim.Adam(net.parameters(), lr=4e-3)
for epoch in range(12):
    s = 0.0
    for i in torch.randperm(700).split(35):
        logits, pos = net(x[i])
        l1, l2 = F.cross_entropy(logits, k[i]), F.mse_loss(pos, p[i])
        v = net.log_var
        loss = torch.exp(-v[0]) * l1 + v[0] / 2 + torch.exp(-v[1]) * l2 / 2 + v[1] / 2
        opt.zero_grad()
        loss.backward()
        opt.step()
        s += loss.item()
    with torch.no_grad():
        lo, po = net(vx)
    print(f"epoch {epoch} total {s / 20:+.3f} weights {torch.exp(-net.log_var).tolist()} acc {(lo.argmax(1) == vk).float().mean():.3f} rmse {(po - vp).pow(2).mean().sqrt():.3f}")
