"""Domain-adversarial training: gradient reversal drives the domain loss up to log 2, which is the aim."""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(21)
torch.set_num_threads(1)


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, lam):
        ctx.lam = lam
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return -ctx.lam * grad, None


def make(n, domain):
    y = torch.randint(2, (n,))
    x = torch.randn(n, 8)
    x[:, 0] += 2.2 * (2 * y.float() - 1)
    # a shortcut that holds in the source domain only
    x[:, 1] = (2.0 * (2 * y.float() - 1) if domain == 0 else -2.0 * torch.ones(n)) + 0.3 * torch.randn(n)
    return x, y


xs, ys = make(1500, 0)
xt, _ = make(1500, 1)                    # target labels are not used
x_val, y_val = make(600, 1)
x_test, y_test = make(1500, 1)


def fit(strength):
    torch.manual_seed(1)
    body = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 8))
    label, domain = nn.Linear(8, 2), nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
    opt = torch.optim.Adam([*body.parameters(), *label.parameters(), *domain.parameters()], lr=3e-3)
    for epoch in range(12):
        lam = strength * (2 / (1 + math.exp(-6 * epoch / 12)) - 1)
        ps, pt = torch.randperm(1500), torch.randperm(1500)
        tot_y = tot_d = 0.0
        for i in range(0, 1500, 75):
            a, b = ps[i:i + 75], pt[i:i + 75]
            hs, ht = body(xs[a]), body(xt[b])
            ly = F.cross_entropy(label(hs), ys[a])
            d_in = Reverse.apply(torch.cat([hs, ht]), lam)
            ld = F.cross_entropy(domain(d_in), torch.cat([torch.zeros(75), torch.ones(75)]).long())
            opt.zero_grad()
            (ly + ld).backward()
            opt.step()
            tot_y, tot_d = tot_y + ly.item() / 20, tot_d + ld.item() / 20
        with torch.no_grad():
            acc = (label(body(x_val)).argmax(1) == y_val).float().mean().item()
        if epoch % 2:
            print(f"strength {strength} epoch {epoch:2d} label loss {tot_y:.4f} domain loss {tot_d:.4f} target val acc {acc:.4f}")
    with torch.no_grad():
        return (label(body(x_test)).argmax(1) == y_test).float().mean().item()


plain = fit(0.0)
adapted = fit(1.0)
print(f"target test accuracy without reversal {plain:.4f} with reversal {adapted:.4f}")
