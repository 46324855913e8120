"""GAN on a ring of eight Gaussians, with spectral norm, two time scales and an averaged generator."""
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.parametrizations import spectral_norm

torch.set_num_threads(1)
torch.manual_seed(3)
centres = torch.tensor([[math.cos(a), math.sin(a)] for a in torch.arange(8) * math.pi / 4]) * 2.0


def real(n):
    return centres[torch.randint(8, (n,))] + 0.12 * torch.randn(n, 2)


G = nn.Sequential(nn.Linear(8, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU(), nn.Linear(96, 2))
D = nn.Sequential(nn.Linear(2, 96), nn.LeakyReLU(0.2), spectral_norm(nn.Linear(96, 96)), nn.LeakyReLU(0.2),
                  nn.Linear(96, 1))
ema = copy.deepcopy(G).requires_grad_(False)
opt_g = torch.optim.Adam(G.parameters(), lr=5e-4, betas=(0.0, 0.99))
opt_d = torch.optim.Adam(D.parameters(), lr=1e-3, betas=(0.0, 0.99))


@torch.no_grad()
def quality(gen, n=4000):
    x = gen(torch.randn(n, 8))
    dist, which = torch.cdist(x, centres).min(1)
    good = dist < 0.4
    share = torch.bincount(which[good], minlength=8) / n
    return good.float().mean().item(), int((share > 0.03).sum()), share.min().item()


hist = []
for it in range(1, 2501):
    x = real(128).requires_grad_(True)
    fake = G(torch.randn(128, 8)).detach()
    out_real = D(x)
    loss_d = F.softplus(-out_real).mean() + F.softplus(D(fake)).mean()
    grad, = torch.autograd.grad(out_real.sum(), x, create_graph=True)
    loss_d = loss_d + 0.05 * grad.pow(2).sum(1).mean()
    opt_d.zero_grad()
    loss_d.backward()
    opt_d.step()

    for p in D.parameters():
        p.requires_grad_(False)
    loss_g = F.softplus(-D(G(torch.randn(128, 8)))).mean()
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()
    for p in D.parameters():
        p.requires_grad_(True)

    with torch.no_grad():
        for a, b in zip(ema.parameters(), G.parameters()):
            a.lerp_(b, 0.005)
    hist.append((loss_d.item(), loss_g.item()))
    if it % 250 == 0:
        d, g = torch.tensor(hist[-250:]).mean(0).tolist()
        q, modes, low = quality(ema)
        print(f"iter {it:5d}  loss D {d:.3f}  loss G {g:.3f}  near a centre {q:.3f}  modes {modes}/8  rarest {low:.3f}")
q, modes, low = quality(ema)
print(f"averaged generator: near a centre {q:.3f}  modes {modes}/8  rarest mode share {low:.3f}")
