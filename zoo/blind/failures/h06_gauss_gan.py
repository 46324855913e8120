import torch
from torch import nn

torch.manual_seed(15)
bce = nn.BCEWithLogitsLoss()


def real(n):
    z = torch.randn(n, 2)
    return torch.stack([2 + z[:, 0], -1 + 0.5 * z[:, 0] + 0.6 * z[:, 1]], 1)


G = nn.Sequential(nn.Linear(6, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 2))
D = nn.Sequential(nn.Linear(2, 48), nn.LeakyReLU(0.2), nn.Linear(48, 48), nn.LeakyReLU(0.2), nn.Linear(48, 1))
og = torch.optim.Adam(G.parameters(), lr=1e-3, betas=(0.5, 0.99))
od = torch.optim.Adam(D.parameters(), lr=2e-3, betas=(0.5, 0.99))
one, zero = torch.ones(64, 1), torch.zeros(64, 1)


def d_step():
    with torch.no_grad():
        fake = G(torch.randn(64, 6))
    loss = bce(D(real(64)), one * 0.9) + bce(D(fake), zero)
    od.zero_grad()
    loss.backward()
    od.step()
    return loss.item()


def g_step():
    loss = bce(D(G(torch.randn(64, 6))), one)
    og.zero_grad()
    loss.backward()
    og.step()
    return loss.item()


for it in range(320):
    ld = d_step()
    lg = g_step()
    if it % 20 == 0:
        with torch.no_grad():
            f = G(torch.randn(256, 6))
        print(f"{it:3d} D {ld:.3f} G {lg:.3f} mean {f[:, 0].mean():.2f} {f[:, 1].mean():.2f} std {f[:, 0].std():.2f} {f[:, 1].std():.2f}")
