"""One-dimensional Wasserstein GAN with weight clipping. The critic's loss is negative by design."""
import torch
import torch.nn as nn

torch.manual_seed(1)
torch.set_num_threads(1)

gen_data = torch.Generator().manual_seed(2)


def real(n):
    side = torch.randint(2, (n, 1), generator=gen_data).float() * 2 - 1
    return side * 1.5 + 0.3 * torch.randn(n, 1, generator=gen_data)


G = nn.Sequential(nn.Linear(2, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 1))
D = nn.Sequential(nn.Linear(1, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
opt_g = torch.optim.RMSprop(G.parameters(), lr=5e-4)
opt_d = torch.optim.RMSprop(D.parameters(), lr=1e-3)
CLIP, CRITIC_STEPS, ITERS = 0.1, 3, 340


def w1(a, b):
    """exact one-dimensional Wasserstein distance of two equal-sized samples"""
    return (a.flatten().sort().values - b.flatten().sort().values).abs().mean().item()


held_out = real(2000)
fixed_z = torch.randn(2000, 2)
with torch.no_grad():
    print(f"before: w1 {w1(G(fixed_z), held_out):.4f}")

ema = [p.detach().clone() for p in G.parameters()]
for it in range(ITERS):
    for _ in range(CRITIC_STEPS):
        x = real(128)
        with torch.no_grad():
            fake = G(torch.randn(128, 2))
        d_loss = D(fake).mean() - D(x).mean()
        opt_d.zero_grad()
        d_loss.backward()
        opt_d.step()
        with torch.no_grad():
            for p in D.parameters():
                p.clamp_(-CLIP, CLIP)
    g_loss = -D(G(torch.randn(128, 2))).mean()
    opt_g.zero_grad()
    g_loss.backward()
    opt_g.step()
    with torch.no_grad():
        for e, p in zip(ema, G.parameters()):
            e.lerp_(p, 0.02)
    if (it + 1) % 50 == 0:
        with torch.no_grad():
            dist = w1(G(fixed_z), held_out)
        print(f"iter {it + 1} critic {d_loss.item():.4f} generator {g_loss.item():.4f} w1 {dist:.4f}")

with torch.no_grad():
    for e, p in zip(ema, G.parameters()):
        p.copy_(e)
    fake = G(fixed_z)
    print(f"final w1 {w1(fake, held_out):.4f} fake mean {fake.mean().item():.3f} std {fake.std().item():.3f} "
          f"real std {held_out.std().item():.3f} share right {(fake > 0).float().mean().item():.3f}")
