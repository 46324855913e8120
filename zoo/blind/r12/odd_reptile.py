# Reptile meta-learning on sinusoids: inner SGD on a copy, outer interpolation of weights, no outer optimizer
import copy, math, torch, torch.nn as nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(1, 40), nn.Tanh(), nn.Linear(40, 40), nn.Tanh(), nn.Linear(40, 1))

def task(): return 0.5 + 1.5 * torch.rand(1), math.pi * torch.rand(1)
def data(tk, n):
    x = torch.rand(n, 1) * 10 - 5
    return x, tk[0] * torch.sin(x + tk[1])

def adapt(model, x, y, steps, lr):
    fast = copy.deepcopy(model)
    opt = torch.optim.SGD(fast.parameters(), lr=lr)
    for _ in range(steps):
        opt.zero_grad()
        loss = (fast(x) - y).pow(2).mean()
        loss.backward(); opt.step()
    return fast, loss.item()

def meta_eval(model, n=12):
    g = torch.get_rng_state(); torch.manual_seed(99)
    before = after = 0.0
    for _ in range(n):
        tk = task(); xs, ys = data(tk, 10); xq, yq = data(tk, 100)
        f, _ = adapt(model, xs, ys, 25, 0.02)
        with torch.no_grad():
            before += (model(xq) - yq).pow(2).mean().item() / n; after += (f(xq) - yq).pow(2).mean().item() / n
    torch.set_rng_state(g)
    return before, after

OUTER = 700
for it in range(OUTER + 1):
    if it % 100 == 0:
        b, a = meta_eval(net); print(f"outer {it}: query mse before adaptation {b:.3f}, after 25 steps {a:.3f}")
    x, y = data(task(), 50)
    fast, _ = adapt(net, x, y, 10, 0.02)
    eps = 1.0 * (1 - it / (OUTER + 1))
    with torch.no_grad():
        for p, q in zip(net.parameters(), fast.parameters()):
            p.add_(eps * (q - p))
