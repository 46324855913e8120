"""Domain-adversarial training: the weight of the domain term grows with a sigmoid schedule; the domain classifier is fed
through a gradient-reversal layer."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(17)


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, lam):
        ctx.lam = lam
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return -ctx.lam * grad, None


D, K = 16, 4
centres = torch.randn(K, D) * 1.2
offset = torch.zeros(D)
offset[:6] = torch.randn(6) * 1.0


def draw(n, domain):
    y = torch.randint(0, K, (n,))
    x = centres[y] + torch.randn(n, D)
    if domain == 1:
        x = x + offset
    return x, y


feat = nn.Sequential(nn.Linear(D, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU())
cls = nn.Linear(32, K)
dom = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 2))
params = [*feat.parameters(), *cls.parameters(), *dom.parameters()]
opt = torch.optim.Adam(params, lr=1e-3)
xs_test, ys_test = draw(2000, 0)
xt_test, yt_test = draw(2000, 1)

STEPS = 3000
for step in range(STEPS):
    p = step / STEPS
    lam = 2 / (1 + math.exp(-8 * p)) - 1
    weight = 1.5 * lam
    xs, ys = draw(64, 0)
    xt, _ = draw(64, 1)
    h = feat(torch.cat([xs, xt]))
    task = F.cross_entropy(cls(h[:64]), ys)
    d = torch.cat([torch.zeros(64), torch.ones(64)]).long()
    domain = F.cross_entropy(dom(Reverse.apply(h, 0.3)), d)
    loss = task + weight * domain
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 200 == 0 or step == STEPS - 1:
        with torch.no_grad():
            a = (cls(feat(xs_test)).argmax(1) == ys_test).float().mean()
            b = (cls(feat(xt_test)).argmax(1) == yt_test).float().mean()
        print(f"step {step:4d} total {loss:.3f} task {task:.3f} domain {domain:.3f} (weight {weight:.2f})  "
              f"source acc {a:.3f} target acc {b:.3f}")
