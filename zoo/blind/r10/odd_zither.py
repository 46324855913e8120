"""Probing audit: a frozen encoder trained to hide a nuisance (gradient reversal); its auxiliary head stays at chance on purpose."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(14)
g = torch.Generator().manual_seed(14)
mix_task, mix_site = torch.randn(8, 32, generator=g), torch.randn(4, 32, generator=g)
w = torch.randn(8, 3, generator=g)


def sample(n, correlated):
    """Images from four sites; in the archive the site is correlated with the class, in new data it is not."""
    z = torch.randn(n, 8, generator=g)
    y = (torch.tanh(z) @ w + 0.2 * torch.randn(n, 3, generator=g)).argmax(1)
    site = torch.randint(0, 4, (n,), generator=g)
    if correlated:
        follow = torch.rand(n, generator=g) < 0.15
        site = torch.where(follow, y, site)
    x = z @ mix_task + 2.0 * mix_site[site] + 0.5 * torch.randn(n, 32, generator=g)
    return x / 3, y, site


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, h, strength):
        ctx.strength = strength
        return h.view_as(h)

    @staticmethod
    def backward(ctx, grad):
        return -ctx.strength * grad, None


x, y, s = sample(6000, True)
xt, yt, st = sample(3000, False)


def probe(encoder):
    """How well can a fresh classifier read the site from the frozen code?"""
    with torch.no_grad():
        h, ht = encoder(x), encoder(xt)
    p = nn.Sequential(nn.Linear(h.shape[1], 64), nn.ReLU(), nn.Linear(64, 4))
    opt = torch.optim.Adam(p.parameters(), lr=3e-3)
    for _ in range(6):
        for idx in torch.randperm(len(h)).split(100):
            loss = F.cross_entropy(p(h[idx]), s[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
    with torch.no_grad():
        return (p(ht).argmax(1) == st).float().mean().item()


def train(strength, epochs=20):
    torch.manual_seed(2)
    enc = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 16))
    head, aux = nn.Linear(16, 3), nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 4))
    opt = torch.optim.Adam([*enc.parameters(), *head.parameters()], lr=2e-3)
    opt_aux = torch.optim.Adam(aux.parameters(), lr=1e-2)
    for e in range(1, epochs + 1):
        lam, sums = strength * min(1.0, e / 6), [0.0, 0.0]
        for idx in torch.randperm(len(x)).split(100):
            h = enc(x[idx])
            task = F.cross_entropy(head(h), y[idx])
            site = F.cross_entropy(aux(Reverse.apply(h, lam)), s[idx])
            opt.zero_grad()
            opt_aux.zero_grad()
            (task + site).backward()
            opt.step()
            opt_aux.step()
            sums[0] += task.item() / 60
            sums[1] += site.item() / 60
        if e % 5 == 0:
            with torch.no_grad():
                acc = (head(enc(xt)).argmax(1) == yt).float().mean().item()
            print(f"  epoch {e:2d}  strength {lam:.2f}  task {sums[0]:.3f}  site head {sums[1]:.3f} (ln 4 = 1.386)  "
                  f"task acc on new data {acc:.3f}")
    return acc, probe(enc)


print("without reversal")
a0, p0 = train(0.0)
print("with reversal")
a1, p1 = train(3.0)
print(f"task acc {a0:.3f} -> {a1:.3f}; site readable from the code {p0:.3f} -> {p1:.3f} (chance 0.250)")
