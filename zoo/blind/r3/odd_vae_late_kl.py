"""VAE on short periodic signals; the KL term is switched on late, so the printed total goes up again."""
import math
import torch
from torch import nn

torch.manual_seed(6)
L, Z = 32, 3
t = torch.linspace(0, 1, L)


def signals(n):
    amp, freq, phase = 0.5 + torch.rand(n, 1), 1 + 2 * torch.rand(n, 1), 2 * math.pi * torch.rand(n, 1)
    return amp * torch.sin(2 * math.pi * freq * t + phase) + 0.05 * torch.randn(n, L)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Sequential(nn.Linear(L, 80), nn.GELU(), nn.Linear(80, 80), nn.GELU(), nn.Linear(80, 2 * Z))
        self.d = nn.Sequential(nn.Linear(Z, 80), nn.GELU(), nn.Linear(80, 80), nn.GELU(), nn.Linear(80, L))


net = Net()
train, test = signals(3000), signals(300)
opt = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=1e-4)
STEPS = 450


def weight(step):
    return 0.0 if step < 150 else min(1.0, (step - 150) / 150)


for step in range(STEPS):
    x = train[torch.randint(len(train), (64,))]
    mu, log_s = net.e(x).chunk(2, -1)
    z = mu + log_s.exp() * torch.randn_like(mu)
    rec = ((net.d(z) - x) ** 2).sum(-1).mean() / (2 * 0.2 ** 2)
    kl = (0.5 * (mu ** 2 + (2 * log_s).exp() - 1) - log_s).sum(-1).mean()
    loss = rec + weight(step) * kl
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 20.0)
    opt.step()
    if step % 50 == 49:
        print(f"step {step + 1} beta {weight(step):.2f} total {loss.item():.2f} rec {rec.item():.2f} kl {kl.item():.2f}")

with torch.no_grad():
    out = net.d(net.e(test).chunk(2, -1)[0])
    print(f"test mse {((out - test) ** 2).mean():.4f} of variance {test.var():.4f}")
