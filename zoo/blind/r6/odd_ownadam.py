# No torch.optim at all: a hand-written Adam with decoupled weight decay, parameters held in a plain dict.
# Goal: at least 95% test accuracy on two interleaved spirals.
import math
import torch

torch.set_num_threads(1)
g = torch.Generator().manual_seed(11)


def spirals(n):
    y = torch.randint(0, 2, (n,), generator=g)
    r = torch.rand(n, generator=g) ** 0.5
    a = 3.5 * math.pi * r + math.pi * y
    x = torch.stack([r * a.cos(), r * a.sin()], 1) + 0.015 * torch.randn(n, 2, generator=g)
    return x * 2, y


def init(i, o):
    return torch.randn(i, o, generator=g) * math.sqrt(2 / i)


P = {"w1": init(2, 64), "b1": torch.zeros(64), "w2": init(64, 64), "b2": torch.zeros(64), "w3": init(64, 2) * 0.1, "b3": torch.zeros(2)}
M = {k: torch.zeros_like(v) for k, v in P.items()}
S = {k: torch.zeros_like(v) for k, v in P.items()}
for v in P.values():
    v.requires_grad_(True)


def model(x):
    h = torch.relu(x @ P["w1"] + P["b1"])
    h = torch.relu(h @ P["w2"] + P["b2"])
    return h @ P["w3"] + P["b3"]


def nll(out, y):
    return (torch.logsumexp(out, 1) - out[torch.arange(len(y)), y]).mean()


xtr, ytr = spirals(2000)
xte, yte = spirals(1000)
t = 0
for epoch in range(1, 81):
    order = torch.randperm(2000, generator=g)
    total = 0.0
    for idx in order.split(100):
        loss = nll(model(xtr[idx]), ytr[idx])
        grads = torch.autograd.grad(loss, list(P.values()))
        t += 1
        with torch.no_grad():
            for (k, p), gr in zip(P.items(), grads):
                M[k].mul_(0.9).add_(gr, alpha=0.1)
                S[k].mul_(0.999).addcmul_(gr, gr, value=0.001)
                mh, sh = M[k] / (1 - 0.9 ** t), S[k] / (1 - 0.999 ** t)
                p -= 5e-3 * (mh / (sh.sqrt() + 1e-8) + 1e-3 * p)
        total += loss.item() / 20
    if epoch % 8 == 0:
        with torch.no_grad():
            acc = (model(xte).argmax(1) == yte).float().mean().item()
        print(f"epoch {epoch} loss {total:.4f} test accuracy {acc:.3f}")
