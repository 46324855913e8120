import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(61)
SIDE, LATENT, BATCH, STEPS = 8, 12, 48, 300
PIX = SIDE * SIDE


def icons(n):
    img = torch.full((n, SIDE, SIDE), -1.0)
    cy, cx = torch.randint(2, 5, (n,)), torch.randint(2, 5, (n,))
    for i in range(n):
        img[i, cy[i]:cy[i] + 2, cx[i]:cx[i] + 2] = 0.6 + 0.3 * torch.rand(1)
    return img.reshape(n, PIX)


class Painter(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(LATENT, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, PIX))

    def forward(self, z):
        return F.hardtanh(self.net(z))


class Judge(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2 * PIX, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1))

    def forward(self, x):
        var = (x - x.mean(0, keepdim=True)).pow(2).mean(0)
        spread = torch.sqrt(var).expand(len(x), -1)
        return self.net(torch.cat([x, spread], 1))[:, 0]


painter, judge = Painter(), Judge()
opt_p = torch.optim.Adam(painter.parameters(), lr=1e-3, betas=(0.5, 0.99))
opt_j = torch.optim.Adam(judge.parameters(), lr=2e-5, betas=(0.5, 0.99))
gallery = icons(600)
losses = []
for step in range(STEPS):
    real = gallery[torch.randint(0, len(gallery), (BATCH,))]
    with torch.no_grad():
        fake = painter(torch.randn(BATCH, LATENT))
    loss_j = F.softplus(-judge(real)).mean() + F.softplus(judge(fake)).mean()
    opt_j.zero_grad()
    loss_j.backward()
    opt_j.step()

    fake = painter(torch.randn(BATCH, LATENT))
    loss = F.softplus(-judge(fake)).mean()
    opt_p.zero_grad()
    loss.backward()
    opt_p.step()
    losses.append(loss.item())
    if step % 25 == 0:
        print(f"step {step} judge {loss_j.item():.4f} painter {loss.item():.4f}")
print("final", losses[-1])
