import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(16)


class Encoder(nn.Module):
    def __init__(self, d_in, d_out=16):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(d_in, 64), nn.ReLU(), nn.Linear(64, d_out))

    def forward(self, x):
        return F.normalize(self.net(x), dim=1)


class PairLoss(nn.Module):
    def __init__(self):
        super().__init__()
        self.tau = nn.Parameter(torch.tensor(0.1))

    def forward(self, za, zb):
        sim = za @ zb.T
        e = torch.exp(sim / self.tau)
        return -torch.log(e.diagonal() / e.sum(1)).mean()


def views(n):
    z = torch.randn(n, 10)
    a = torch.cat([z, 0.05 * torch.randn(n, 6)], 1)
    b = torch.cat([0.05 * torch.randn(n, 4), z.flip(1)], 1)
    return a, b


img, txt, crit = Encoder(16), Encoder(14), PairLoss()
opt = torch.optim.Adam([
    {"params": list(img.parameters()) + list(txt.parameters()), "lr": 3e-3},
    {"params": crit.parameters(), "lr": 2e-3},
])
for step in range(500):
    a, b = views(48)
    loss = crit(img(a), txt(b))
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 40 == 0:
        print(f"step {step:3d} loss {loss.item():.4f} tau {crit.tau.item():.4f}")
