"""Meta learning on sines with functional inner steps. Loss before adaptation stays high by design."""
import torch
import torch.nn as nn
from torch.func import functional_call

torch.manual_seed(2)
net = nn.Sequential(nn.Linear(1, 40), nn.ReLU(), nn.Linear(40, 40), nn.ReLU(), nn.Linear(40, 1))
meta = torch.optim.Adam(net.parameters(), lr=2e-3)


def task():
    a, p = 0.5 + 2.5 * torch.rand(1), 3.14 * torch.rand(1)
    x = torch.rand(20, 1) * 10 - 5
    return x, a * torch.sin(x + p)


def adapt(params, x, y, steps, create):
    for _ in range(steps):
        loss = nn.functional.mse_loss(functional_call(net, params, (x,)), y)
        gr = torch.autograd.grad(loss, list(params.values()), create_graph=create)
        params = {k: v - 0.02 * g for (k, v), g in zip(params.items(), gr)}
    return params


def test(n=60):
    pre, post = 0.0, 0.0
    for _ in range(n):
        x, y = task()
        base = {k: v.detach().requires_grad_() for k, v in net.named_parameters()}
        new = adapt(base, x[:10], y[:10], 5, False)
        pre += nn.functional.mse_loss(net(x[10:]), y[10:]).item() / n
        post += nn.functional.mse_loss(functional_call(net, new, (x[10:],)), y[10:]).item() / n
    return pre, post


first = test()
for it in range(500):
    meta.zero_grad()
    tot = 0.0
    for _ in range(4):
        x, y = task()
        new = adapt(dict(net.named_parameters()), x[:10], y[:10], 1, True)
        l = nn.functional.mse_loss(functional_call(net, new, (x[10:],)), y[10:]) / 4
        l.backward()
        tot += l.item()
    meta.step()
    if it % 100 == 99:
        pre, post = test()
        print(f"meta step {it + 1} query loss {tot:.3f} | held-out before {pre:.3f} after 5 steps {post:.3f}")
print(f"after adaptation: {first[1]:.3f} at start, {post:.3f} now")
