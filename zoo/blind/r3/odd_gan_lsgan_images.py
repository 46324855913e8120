import torch
from torch import nn

# least-squares GAN on 6x6 blobs; betas (0, 0.9), four times the rate for D, smoothed real label, EMA generator for the pictures
torch.manual_seed(40)
SIDE, Z = 6, 6
grid = torch.stack(torch.meshgrid(torch.arange(SIDE), torch.arange(SIDE), indexing="ij"), -1).float()


def blobs(n):
    c = 1.5 + 2.0 * torch.rand(n, 1, 1, 2)
    return (torch.exp(-((grid - c) ** 2).sum(-1) / 2.0) * 2 - 1).flatten(1)


class Gen(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(Z, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, SIDE * SIDE), nn.Tanh())

    def forward(self, n):
        return self.f(torch.randn(n, Z))


class Disc(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(SIDE * SIDE, 64), nn.LeakyReLU(0.2), nn.Linear(64, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))

    def forward(self, x):
        return self.f(x + 0.1 * torch.randn_like(x))


g, d, g_avg = Gen(), Disc(), Gen()
g_avg.load_state_dict(g.state_dict())
g_avg.requires_grad_(False)
opt_g = torch.optim.Adam(g.parameters(), lr=1e-3, betas=(0.0, 0.9))
opt_d = torch.optim.Adam(d.parameters(), lr=4e-3, betas=(0.0, 0.9))
ref = blobs(1000)


def distance_to_data(x):
    return torch.cdist(x, ref).min(1).values.mean().item()


for i in range(1, 401):
    x = blobs(64)
    with torch.no_grad():
        y = g(64)
    ld = ((d(x) - 0.9) ** 2).mean() + (d(y) ** 2).mean()
    opt_d.zero_grad()
    ld.backward()
    opt_d.step()
    lg = ((d(g(64)) - 0.9) ** 2).mean()
    opt_g.zero_grad()
    lg.backward()
    opt_g.step()
    with torch.no_grad():
        for a, b in zip(g_avg.parameters(), g.parameters()):
            a.lerp_(b, 0.02)
    if i % 50 == 0:
        s = g_avg(500)
        print(f"{i}: D {ld.item():.3f} G {lg.item():.3f} distance to data {distance_to_data(s):.3f} spread {s.std(0).mean():.3f} / {ref.std(0).mean():.3f}")
