import math
import torch
import torch.nn as nn

torch.manual_seed(1)
T, STEPS, BATCH = 100, 420, 128


def cosine_alpha_bar(n, s=0.008):
    x = torch.linspace(0, 1, n + 1)
    f = torch.cos((x + s) / (1 + s) * math.pi / 2) ** 2
    return (f / f[0])[:n]


def two_moons(n):
    a = torch.rand(n) * math.pi
    side = torch.randint(0, 2, (n,))
    x = torch.where(side == 0, torch.cos(a), 1 - torch.cos(a))
    y = torch.where(side == 0, torch.sin(a), 0.5 - torch.sin(a))
    return torch.stack([x, y], 1) + 0.05 * torch.randn(n, 2)


class Denoiser(nn.Module):
    def __init__(self, hidden=96):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(3, hidden), nn.SiLU(),
            nn.Linear(hidden, hidden), nn.SiLU(),
            nn.Linear(hidden, 2),
        )

    def forward(self, x, cond):
        return self.net(torch.cat([x, cond[:, None]], 1))


alpha_bar = cosine_alpha_bar(T)
model = Denoiser()
opt = torch.optim.Adam(model.parameters(), lr=2e-3)
losses = []
for step in range(STEPS):
    x0 = two_moons(BATCH)
    earliest = max(0, 60 - step // 5)
    t = torch.randint(earliest, T, (BATCH,))
    ab = alpha_bar[t]
    eps = torch.randn_like(x0)
    xt = ab.sqrt()[:, None] * x0 + (1 - ab).sqrt()[:, None] * eps
    cond = torch.log(ab / (1 - ab)) / 8
    loss = ((model(xt, cond) - eps) ** 2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    losses.append(loss.item())
    if step % 25 == 0:
        print(f"{step:4d} earliest {earliest:3d} loss {loss.item():.4f}")
print("final", losses[-1])
