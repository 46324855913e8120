"""Domain-adversarial training (gradient reversal): the domain loss is meant to RISE towards ln 2 = 0.693.
Goal: target-domain accuracy above 0.85 without target labels, domain classifier near chance."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(8)


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, lam):
        ctx.lam = lam
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        return -ctx.lam * g, None


def draw(n, shift):
    y = torch.randint(0, 2, (n,))
    x = torch.randn(n, 10)
    x[:, 0] += 3.0 * (y * 2 - 1)
    x[:, 1] += 2.0 * (y * 2 - 1)
    x[:, 5:] += shift * torch.tensor([2.0, -2.0, 1.5, 1.0, -1.0])
    x[:, 5] += (1 - shift) * 1.5 * (y * 2 - 1)
    return x, y


feat = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 16))
label, domain = nn.Linear(16, 2), nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
opt = torch.optim.Adam([*feat.parameters(), *label.parameters(), *domain.parameters()], lr=1e-3)
xt_test, yt_test = draw(2000, 1.0)
steps = 2000
for s in range(1, steps + 1):
    lam = 2 / (1 + torch.exp(torch.tensor(-8.0 * s / steps))).item() - 1
    xs, ys = draw(64, 0.0)
    xt, _ = draw(64, 1.0)
    z = feat(torch.cat([xs, xt]))
    cls = F.cross_entropy(label(z[:64]), ys)
    dom = F.binary_cross_entropy_with_logits(domain(Reverse.apply(z, lam)).squeeze(1), torch.cat([torch.zeros(64), torch.ones(64)]))
    opt.zero_grad()
    (cls + dom).backward()
    opt.step()
    if s % 200 == 0:
        with torch.no_grad():
            acc = (label(feat(xt_test)).argmax(1) == yt_test).float().mean()
        print(f"step {s} lambda {lam:.2f} class loss {cls.item():.4f} domain loss {dom.item():.4f} target acc {acc:.3f}")
