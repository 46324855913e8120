"""GAN with hinge loss and spectral norm on a mixture of eight Gaussians; sliced Wasserstein distance and modes reached."""
import numpy as np
import torch
import torch.nn as nn
from torch.nn.utils.parametrizations import spectral_norm as sn

torch.set_num_threads(1)
torch.manual_seed(1)
Z, BATCH, STEPS = 16, 192, 1300
CENTRES = torch.stack([torch.tensor([np.cos(a), np.sin(a)]) for a in np.arange(8) * np.pi / 4]).float() * 2


def real(n):
    return CENTRES[torch.randint(0, 8, (n,))] + 0.12 * torch.randn(n, 2)


G = nn.Sequential(nn.Linear(Z, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
D = nn.Sequential(sn(nn.Linear(2, 64)), nn.LeakyReLU(0.2), sn(nn.Linear(64, 64)), nn.LeakyReLU(0.2),
                  nn.Linear(64, 1))
opt_g = torch.optim.Adam(G.parameters(), lr=1e-3, betas=(0.0, 0.9))
opt_d = torch.optim.Adam(D.parameters(), lr=3e-3, betas=(0.0, 0.9))
decay = [torch.optim.lr_scheduler.LinearLR(o, 1.0, 0.1, STEPS) for o in (opt_g, opt_d)]


@torch.no_grad()
def quality(n=2000):
    f, r = G(torch.randn(n, Z)), real(n)
    d = torch.nn.functional.normalize(torch.randn(2, 64), dim=0)
    swd = ((f @ d).sort(0)[0] - (r @ d).sort(0)[0]).abs().mean().item()
    dist, idx = torch.cdist(f, CENTRES).min(1)
    share = torch.bincount(idx[dist < 0.4], minlength=8) / n
    return swd, int((share > 0.03).sum()), (dist < 0.4).float().mean().item()


for step in range(1, STEPS + 1):
    for _ in range(2):
        with torch.no_grad():
            fake = G(torch.randn(BATCH, Z))
        d_real, d_fake = D(real(BATCH)), D(fake)
        loss_d = torch.relu(1 - d_real).mean() + torch.relu(1 + d_fake).mean()
        opt_d.zero_grad()
        loss_d.backward()
        opt_d.step()
    loss_g = -D(G(torch.randn(BATCH, Z))).mean()
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()
    for s in decay:
        s.step()
    if step % 130 == 0:
        swd, modes, close = quality()
        print(f"{step:5d} loss_d {loss_d.item():.3f} loss_g {loss_g.item():+.3f} swd {swd:.3f} modes {modes}/8 on-mode {close:.2f}")
