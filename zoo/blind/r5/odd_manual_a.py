# DeepSets without nn.Module and without torch.optim: weights in a dict, gradients by autograd.grad, momentum by hand
import math
import torch

gen = torch.Generator().manual_seed(33)


def init(i, o):
    return (torch.randn(i, o, generator=gen) * math.sqrt(2 / i)).requires_grad_(), torch.zeros(o, requires_grad=True)


def sets(n):
    """label: does the set hold more points inside the unit disc than outside"""
    x = 0.95 * torch.randn(n, 15, 2, generator=gen)
    y = ((x.norm(dim=-1) < 1.0).sum(1) >= 7).float()
    return x, y


P = {}
P["w1"], P["b1"] = init(2, 32)
P["w2"], P["b2"] = init(32, 32)
P["w3"], P["b3"] = init(32, 32)
P["w4"], P["b4"] = init(32, 1)
names = list(P)
vel = {k: torch.zeros_like(P[k]) for k in names}


def net(x):
    h = torch.relu(x @ P["w1"] + P["b1"])
    h = torch.relu(h @ P["w2"] + P["b2"]).mean(1)
    h = torch.relu(h @ P["w3"] + P["b3"])
    return (h @ P["w4"] + P["b4"])[:, 0]


def bce(z, y):
    return (z.clamp(min=0) - z * y + torch.log1p(torch.exp(-z.abs()))).mean()


xtr, ytr = sets(3000)
xte, yte = sets(1000)
for step in range(1, 701):
    lr = 0.1 if step < 500 else 0.02
    i = torch.randint(0, 3000, (64,), generator=gen)
    loss = bce(net(xtr[i]), ytr[i])
    grads = torch.autograd.grad(loss, [P[k] for k in names])
    with torch.no_grad():
        for k, g in zip(names, grads):
            vel[k].mul_(0.9).add_(g)
            P[k] -= lr * vel[k]
    if step % 100 == 0:
        with torch.no_grad():
            z = net(xte)
        print(step, f"train {loss.item():.4f} test loss {bce(z, yte).item():.4f} acc {((z > 0).float() == yte).float().mean().item():.4f} (majority {max(yte.mean().item(), 1 - yte.mean().item()):.3f})")
