"""Two views of the same thing: maximise the InfoNCE lower bound on mutual information (optimizer with maximize=True),
then probe the learned code."""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(19)
D = 24
Wa, Wb = torch.randn(3, D), torch.randn(3, D)


def views(n):
    z = torch.randn(n, 3)
    a = torch.tanh(z @ Wa * 0.6) + 0.7 * torch.randn(n, D)
    b = torch.tanh(z @ Wb * 0.6) + 0.7 * torch.randn(n, D)
    return z, a, b


class Tower(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(D, 64), nn.ReLU(), nn.Linear(64, 16))

    def forward(self, x):
        return F.normalize(super().forward(x), dim=1)


fa, fb = Tower(), Tower()
scale = nn.Parameter(torch.tensor(math.log(5.0)))
opt = torch.optim.Adam([*fa.parameters(), *fb.parameters(), scale], lr=2e-3, maximize=True)


def bound(a, b):
    s = scale.exp() * fa(a) @ fb(b).T
    return math.log(len(a)) + 0.5 * (s.log_softmax(1).diag().mean() + s.log_softmax(0).diag().mean())


def probe():
    with torch.no_grad():
        z, a, _ = views(1500)
        h = torch.cat([fa(a), torch.ones(len(a), 1)], 1)
        w = torch.linalg.lstsq(h[:1000], z[:1000]).solution
        return 1 - ((h[1000:] @ w - z[1000:]) ** 2).mean().item() / z[1000:].var().item()


print(f"before: probe R2 {probe():.3f}")
for step in range(1, 501):
    _, a, b = views(128)
    value = bound(a, b)
    opt.zero_grad()
    value.backward()
    opt.step()
    if step % 100 == 0:
        print(f"step {step} bound {value.item():.4f} nats (max {math.log(128):.2f}) scale {scale.exp().item():.2f} probe R2 {probe():.3f}")
