# Energy-based model in 2-D with short-run Langevin negatives from a replay buffer.
# The contrastive loss E(data) - E(samples) sits near zero when things go well.
import torch
import torch.nn as nn

torch.set_num_threads(1)
torch.manual_seed(0)


def rings(n):
    r = torch.where(torch.rand(n) < 0.3, 0.5, 1.8) + 0.15 * torch.randn(n)
    a = 6.28319 * torch.rand(n)
    return torch.stack([r * a.cos(), r * a.sin()], 1)


energy = nn.Sequential(nn.Linear(2, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 1))
opt = torch.optim.Adam(energy.parameters(), 4e-3, betas=(0.5, 0.99))
buffer = torch.rand(4000, 2) * 5 - 2.5
STEP, K = 0.008, 15


def langevin(x, k):
    # the energy's weights take no gradient here, only x moves
    for p in energy.parameters():
        p.requires_grad_(False)
    for _ in range(k):
        x.requires_grad_(True)
        g, = torch.autograd.grad(energy(x).sum(), x)
        x = (x - STEP * g.clamp(-30, 30) + (2 * STEP) ** 0.5 * torch.randn_like(x)).detach().clamp(-3, 3)
    for p in energy.parameters():
        p.requires_grad_(True)
    return x


def on_ring(x):
    r = x.norm(dim=1)
    return (((r - 0.5).abs() < 0.4) | ((r - 1.8).abs() < 0.4)).float().mean().item()


for it in range(1, 1601):
    idx = torch.randint(0, len(buffer), (200,))
    x0 = buffer[idx]
    fresh = torch.rand(200) < 0.05
    x0[fresh] = torch.rand(int(fresh.sum()), 2) * 5 - 2.5
    neg = langevin(x0, K)
    buffer[idx] = neg
    pos = rings(200) + 0.02 * torch.randn(200, 2)
    ep, en = energy(pos), energy(neg)
    loss = ep.mean() - en.mean() + 1e-4 * (ep ** 2 + en ** 2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if it == 1200:
        opt.param_groups[0]["lr"] = 5e-4
    if it % 200 == 0:
        print(f"it {it}: loss {loss.item():+.3f} buffer on rings {on_ring(buffer):.3f}")
s = langevin(torch.rand(1500, 2) * 5 - 2.5, 600)
chance = on_ring(torch.rand(20000, 2) * 5 - 2.5)
print(f"fresh chains after 600 steps on the rings {on_ring(s):.3f} (uniform {chance:.3f}, data {on_ring(rings(5000)):.3f})")
