"""WGAN with gradient penalty for a 2-D ring of three modes: two optimizers, three critic steps per generator step."""
import math
import torch
import torch.nn as nn

torch.manual_seed(3)
torch.set_num_threads(1)
ang = torch.arange(3) * 2 * math.pi / 3
modes = torch.stack([ang.cos(), ang.sin()], 1)


def real(n):
    return modes[torch.randint(0, 3, (n,))] + 0.1 * torch.randn(n, 2)


def mlp(i, o):
    return nn.Sequential(nn.Linear(i, 64), nn.LeakyReLU(0.2), nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Linear(64, o))


G, D = mlp(4, 2), mlp(2, 1)
og = torch.optim.Adam(G.parameters(), lr=2e-3, betas=(0.0, 0.9))
od = torch.optim.Adam(D.parameters(), lr=4e-3, betas=(0.0, 0.9))


def penalty(a, b):
    e = torch.rand(len(a), 1)
    m = (e * a + (1 - e) * b).requires_grad_(True)
    g, = torch.autograd.grad(D(m).sum(), m, create_graph=True)
    return ((g.norm(dim=1) - 1) ** 2).mean()


def report(it, dl, gl):
    with torch.no_grad():
        s = G(torch.randn(2000, 4))
        d = torch.cdist(s, modes)
        near = d.min(1).values < 0.35
        counts = torch.bincount(d.argmin(1)[near], minlength=3)
    print(f"iter {it:4d}  critic {dl:+.3f}  gen {gl:+.3f}  near a mode {near.float().mean():.3f}  modes covered {(counts > 300).sum().item()}/3")


for it in range(1, 526):
    for _ in range(3):
        x, f = real(128), G(torch.randn(128, 4)).detach()
        dl = D(f).mean() - D(x).mean() + 0.5 * penalty(x, f)
        od.zero_grad()
        dl.backward()
        od.step()
    gl = -D(G(torch.randn(128, 4))).mean()
    og.zero_grad()
    gl.backward()
    og.step()
    if it % 75 == 0 or it == 1:
        report(it, dl.item(), gl.item())
