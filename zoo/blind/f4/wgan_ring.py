import math
import torch
import torch.nn as nn

torch.manual_seed(5)


def ring(n):
    k = torch.randint(0, 8, (n,))
    ang = k * (2 * math.pi / 8)
    return torch.stack([ang.cos(), ang.sin()], 1) * 2 + 0.05 * torch.randn(n, 2)


G = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
D = nn.Sequential(nn.Linear(2, 10), nn.ReLU(), nn.Linear(10, 6), nn.ReLU(), nn.Linear(6, 1))
optG = torch.optim.Adam(G.parameters(), lr=1e-3, betas=(0.5, 0.9))
optD = torch.optim.Adam(D.parameters(), lr=5e-3, betas=(0.5, 0.9))


def gradient_penalty(real, fake):
    a = torch.rand(real.size(0), 1)
    mid = (a * real + (1 - a) * fake).requires_grad_(True)
    out = D(mid)
    g, = torch.autograd.grad(out.sum(), mid, create_graph=True)
    slope = torch.sqrt(g.pow(2).sum(1))
    return ((slope - 1) ** 2).mean()


for it in range(120):
    for _ in range(3):
        real = ring(64)
        fake = G(torch.randn(64, 4)).detach()
        gp = gradient_penalty(real, fake)
        lossD = D(fake).mean() - D(real).mean() + 5.0 * gp
        optD.zero_grad()
        lossD.backward()
        optD.step()
    lossG = -D(G(torch.randn(64, 4))).mean()
    optG.zero_grad()
    lossG.backward()
    optG.step()
    if it % 5 == 0:
        print(it, "D %.4f  G %.4f" % (lossD.item(), lossG.item()))
