"""Density of sensor positions with a coupling flow; quality is the log-likelihood in nats, and a two-sample check at the end."""
import math

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(14)


def positions(n):
    """Two thin arcs inside the unit square, in metres."""
    t = torch.rand(n) * math.pi
    up = torch.rand(n) < 0.5
    x = torch.where(up, torch.cos(t), 1 - torch.cos(t)) * 0.12
    y = torch.where(up, torch.sin(t), 0.5 - torch.sin(t)) * 0.12
    return torch.stack([x, y], 1) + 0.006 * torch.randn(n, 2)


class Coupling(nn.Module):
    def __init__(self, swap):
        super().__init__()
        self.swap = swap
        self.net = nn.Sequential(nn.Linear(1, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh(), nn.Linear(48, 2))
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)

    def forward(self, z):
        a, b = z.unbind(1)
        if self.swap:
            a, b = b, a
        s, t = self.net(a[:, None]).unbind(1)
        s = 2 * torch.tanh(s / 2)
        b = b * s.exp() + t
        return torch.stack([b, a] if self.swap else [a, b], 1), s

    def inverse(self, z):
        a, b = z.unbind(1)
        if self.swap:
            a, b = b, a
        s, t = self.net(a[:, None]).unbind(1)
        b = (b - t) * (-2 * torch.tanh(s / 2)).exp()
        return torch.stack([b, a] if self.swap else [a, b], 1)


train, held = positions(12000), positions(3000)
mu, sd = train.mean(0), train.std(0)
log_sd = sd.log().sum()
layers = nn.ModuleList([Coupling(bool(i % 2)) for i in range(8)])
opt = torch.optim.Adam(layers.parameters(), lr=1e-3)


def nll(x):
    z = (x - mu) / sd
    logdet = -log_sd
    for layer in layers:
        z, s = layer(z)
        logdet = logdet + s
    return (0.5 * z.pow(2).sum(1) + math.log(2 * math.pi) - logdet).mean()


for step in range(1, 1801):
    loss = nll(train[torch.randint(0, len(train), (200,))])
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(layers.parameters(), 5.0)
    opt.step()
    if step == 1200:
        for group in opt.param_groups:
            group["lr"] = 2e-4
    if step % 150 == 0 or step == 1:
        with torch.no_grad():
            print(f"step {step:4d}  loss {loss:.3f}  held-out nll {nll(held):.3f}")

with torch.no_grad():
    z = torch.randn(3000, 2)
    for layer in reversed(layers):
        z = layer.inverse(z)
    fake = z * sd + mu
    near = torch.cdist(fake, held).min(1).values.median()
    ref = torch.cdist(positions(3000), held).min(1).values.median()
print(f"median distance of a sample to the data {near * 1000:.2f} mm (real data: {ref * 1000:.2f} mm)")
