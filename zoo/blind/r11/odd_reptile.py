"""First-order meta-learning (Reptile) on sine tasks. The network is never good at any task before it has
been adapted, so the error 'before' stays high; 'after 8 steps' is the metric."""
import copy
import math
import torch
import torch.nn as nn

torch.set_num_threads(1)
torch.manual_seed(0)


class Task:
    def __init__(self):
        self.a = 0.5 + 2.0 * torch.rand(1)
        self.ph = math.pi * torch.rand(1)

    def draw(self, n):
        x = torch.rand(n, 1) * 8 - 4
        return x, self.a * torch.sin(x + self.ph)


def inner(net, x, y, steps, lr=0.02):
    opt = torch.optim.SGD(net.parameters(), lr=lr)
    for _ in range(steps):
        loss = ((net(x) - y) ** 2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()


def meta_test(net, tasks, shots=10, steps=8):
    before = after = 0.0
    for task, (x, y) in tasks:
        xq, yq = task.draw(100)
        copy_ = copy.deepcopy(net)
        with torch.no_grad():
            before += ((copy_(xq) - yq) ** 2).mean().item()
        inner(copy_, x, y, steps)
        with torch.no_grad():
            after += ((copy_(xq) - yq) ** 2).mean().item()
    return before / len(tasks), after / len(tasks)


net = nn.Sequential(nn.Linear(1, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
tests = [(t, t.draw(10)) for t in (Task() for _ in range(50))]
b, a = meta_test(net, tests)
print(f"untrained: before {b:.3f} after adaptation {a:.3f}")
N = 2500
for it in range(N):
    task = Task()
    old = [p.detach().clone() for p in net.parameters()]
    x, y = task.draw(10)
    inner(net, x, y, 8)
    step = 1.0 * (1 - it / N)
    with torch.no_grad():
        for p, o in zip(net.parameters(), old):
            p.copy_(o + step * (p - o))
    if (it + 1) % 500 == 0:
        b, a = meta_test(net, tests)
        print(f"iteration {it + 1}: before {b:.3f} after adaptation {a:.3f}")
print(f"meta-test mse after 8 steps on 10 points: {a:.3f} (before {b:.3f})")
