import math

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(50)


def ring(n):
    k = torch.randint(8, (n,)) * (2 * math.pi / 8)
    centre = torch.stack([torch.cos(k), torch.sin(k)], dim=1) * 2
    return centre + 0.05 * torch.randn(n, 2)


def mlp(d_in, d_out, width=64):
    return nn.Sequential(
        nn.Linear(d_in, width), nn.LeakyReLU(0.2),
        nn.Linear(width, width), nn.LeakyReLU(0.2),
        nn.Linear(width, d_out),
    )


generator = mlp(4, 2)
critic = mlp(2, 1)
opt_g = torch.optim.RMSprop(generator.parameters(), lr=2e-5)
opt_c = torch.optim.RMSprop(critic.parameters(), lr=1e-3)

batch = 64
for step in range(360):
    for _ in range(4):
        real = ring(batch)
        with torch.no_grad():
            fake = generator(torch.randn(batch, 4))
        loss_c = critic(fake).mean() - critic(real).mean()
        opt_c.zero_grad()
        loss_c.backward()
        opt_c.step()

    loss_g = -critic(generator(torch.randn(batch, 4))).mean()
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()

    if step % 20 == 0:
        print(f"step {step} critic {loss_c.item():.4f} generator {loss_g.item():.4f}")
