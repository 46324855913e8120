"""GAN on a ring of 5 Gaussians. Neither loss has to fall; goal: all 5 modes covered and 85% of samples close to a mode."""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(6)
ANG = torch.arange(5) * 2 * math.pi / 5
MODES = torch.stack([ANG.cos(), ANG.sin()], 1) * 2


def real(n):
    return MODES[torch.randint(0, 5, (n,))] + 0.25 * torch.randn(n, 2)


def mlp(i, o, h=64):
    return nn.Sequential(nn.Linear(i, h), nn.LeakyReLU(0.2), nn.Linear(h, h), nn.LeakyReLU(0.2), nn.Linear(h, o))


G, D = mlp(8, 2), mlp(2, 1)
g_opt = torch.optim.Adam(G.parameters(), lr=1e-3, betas=(0.5, 0.99))
d_opt = torch.optim.Adam(D.parameters(), lr=2e-3, betas=(0.5, 0.99))
ema = {k: v.clone() for k, v in G.state_dict().items()}
for step in range(1, 2001):
    x = real(128).requires_grad_()
    fake = G(torch.randn(128, 8))
    dr, df = D(x), D(fake.detach())
    grad = torch.autograd.grad(dr.sum(), x, create_graph=True)[0]
    d_loss = F.softplus(-dr).mean() + F.softplus(df).mean() + 0.01 * grad.pow(2).sum(1).mean()
    d_opt.zero_grad()
    d_loss.backward()
    d_opt.step()
    g_loss = F.softplus(-D(G(torch.randn(128, 8)))).mean()
    g_opt.zero_grad()
    g_loss.backward()
    g_opt.step()
    for k, v in G.state_dict().items():
        ema[k].lerp_(v, 0.02)
    if step % 250 == 0:
        with torch.no_grad():
            s = torch.func.functional_call(G, ema, (torch.randn(2000, 8),))
        d = torch.cdist(s, MODES).min(1)
        covered = (torch.bincount(d.indices[d.values < 0.75], minlength=5) > 100).sum().item()
        print(f"step {step} d {d_loss.item():.3f} g {g_loss.item():.3f} | modes {covered}/5 close {(d.values < 0.75).float().mean():.3f}")
