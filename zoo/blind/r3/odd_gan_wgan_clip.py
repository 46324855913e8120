"""WGAN with weight clipping on a 2-d spiral: five critic steps per generator step, RMSprop, no sigmoid anywhere."""
import torch
import torch.nn as nn

torch.manual_seed(12)


def spiral(n):
    a = 1.5 * torch.pi * (0.4 + torch.rand(n))
    r = a / 6
    return torch.stack([r * a.cos(), r * a.sin()], 1) + 0.03 * torch.randn(n, 2)


def net(i, o):
    return nn.Sequential(nn.Linear(i, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, o))


def energy_distance(a, b):
    return (2 * torch.cdist(a, b).mean() - torch.cdist(a, a).mean() - torch.cdist(b, b).mean()).item()


gen, critic = net(4, 2), net(2, 1)
og = torch.optim.RMSprop(gen.parameters(), lr=1e-3)
oc = torch.optim.RMSprop(critic.parameters(), lr=1e-3)
ref = spiral(600)
fixed = torch.randn(600, 4)
for it in range(151):
    for p in critic.parameters():
        p.requires_grad_(True)
    for _ in range(5):
        real = spiral(100)
        with torch.no_grad():
            fake = gen(torch.randn(100, 4))
        c_loss = critic(fake).mean() - critic(real).mean()
        oc.zero_grad()
        c_loss.backward()
        oc.step()
        with torch.no_grad():
            for p in critic.parameters():
                p.clamp_(-0.1, 0.1)
    for p in critic.parameters():
        p.requires_grad_(False)
    g_loss = -critic(gen(torch.randn(100, 4))).mean()
    og.zero_grad()
    g_loss.backward()
    og.step()
    if it % 25 == 0:
        with torch.no_grad():
            e = energy_distance(gen(fixed), ref)
        print(f"it {it:3d} critic {c_loss.item():+.4f} gen {g_loss.item():+.4f} energy distance {e:.4f}")
