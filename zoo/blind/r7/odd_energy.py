"""Energy-based model with Langevin negatives: the loss hovers around zero from start to end."""
import torch
import torch.nn as nn

torch.manual_seed(26)
torch.set_num_threads(1)


def data(n):
    ang = torch.rand(n) * 6.2832
    r = 1.5 + 0.12 * torch.randn(n)
    return torch.stack([r * ang.cos(), r * ang.sin()], 1)


class Energy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 1))

    def forward(self, x):
        return self.net(x).squeeze(1) + 0.05 * x.pow(2).sum(1)


def langevin(energy, x, steps, size=0.05):
    x = x.detach()
    for _ in range(steps):
        x.requires_grad_(True)
        grad, = torch.autograd.grad(energy(x).sum(), x)
        x = (x - size * grad.clamp(-5, 5) + (2 * size) ** 0.5 * 0.3 * torch.randn_like(x)).detach().clamp(-4, 4)
    return x


train, held = data(3000), data(500)
outside = torch.rand(500, 2) * 6 - 3
energy = Energy()
opt = torch.optim.Adam(energy.parameters(), lr=2e-3, betas=(0.5, 0.99))
buffer = torch.rand(1000, 2) * 4 - 2

for it in range(240):
    pos = train[torch.randint(len(train), (128,))]
    rows = torch.randint(len(buffer), (128,))
    start = buffer[rows].clone()
    start[:6] = torch.rand(6, 2) * 4 - 2
    neg = langevin(energy, start, 6)
    buffer[rows] = neg
    e_pos, e_neg = energy(pos), energy(neg)
    # difference of energies: goes to zero when negatives look like data
    loss = e_pos.mean() - e_neg.mean() + 0.02 * (e_pos.pow(2) + e_neg.pow(2)).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if (it + 1) % 40 == 0:
        with torch.no_grad():
            gap = (energy(outside).mean() - energy(held).mean()).item()
        print(f"iter {it + 1} loss {loss.item():+.4f} energy gap outside/data {gap:.3f} mean radius {neg.norm(dim=1).mean().item():.3f}")

samples = langevin(energy, torch.rand(500, 2) * 4 - 2, 120)
radius = samples.norm(dim=1)
with torch.no_grad():
    auc = (energy(outside)[:, None] > energy(held)[None]).float().mean().item()
print(f"sample radius {radius.mean().item():.3f} +- {radius.std().item():.3f} (data 1.500 +- 0.120), separation {auc:.3f}")
