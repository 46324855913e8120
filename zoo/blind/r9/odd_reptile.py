"""Reptile meta-learning on sine regression; error before and after adaptation on held-out tasks."""
import copy
import numpy as np
import torch
import torch.nn as nn

torch.set_num_threads(1)
torch.manual_seed(0)
rng = np.random.default_rng(0)
META, INNER, INNER_LR, SHOTS = 1800, 6, 0.02, 10


class Task:
    def __init__(self):
        self.amp, self.phase = rng.uniform(0.5, 3), rng.uniform(0, 2 * np.pi)

    def draw(self, n):
        x = torch.tensor(rng.uniform(-4, 4, (n, 1)), dtype=torch.float32)
        return x, self.amp * torch.sin(x + self.phase)


def net():
    return nn.Sequential(nn.Linear(1, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh(), nn.Linear(48, 1))


def adapt(model, x, y, steps):
    first = None
    for _ in range(steps):
        loss = ((model(x) - y) ** 2).mean()
        first = loss.item() if first is None else first
        grads = torch.autograd.grad(loss, list(model.parameters()))
        with torch.no_grad():
            for p, g in zip(model.parameters(), grads):
                p -= INNER_LR * g
    return first


held_out = [Task() for _ in range(40)]
support = [t.draw(SHOTS) for t in held_out]
query = [t.draw(100) for t in held_out]


def score(meta, steps):
    out = []
    for (sx, sy), (qx, qy) in zip(support, query):
        m = copy.deepcopy(meta)
        adapt(m, sx, sy, steps)
        with torch.no_grad():
            out.append(((m(qx) - qy) ** 2).mean().item())
    return float(np.mean(out))


meta = net()
fresh = score(meta, 24)
hist = []
for it in range(1, META + 1):
    eps = 0.6 * (1 - it / META) + 0.02
    fast = copy.deepcopy(meta)
    x, y = Task().draw(SHOTS)
    hist.append(adapt(fast, x, y, INNER))
    with torch.no_grad():
        for p, q in zip(meta.parameters(), fast.parameters()):
            p += eps * (q - p)
    if it % 200 == 0:
        print(f"iter {it:5d} task loss {np.mean(hist[-200:]):.3f} (std {np.std(hist[-200:]):.3f}) "
              f"held-out mse before {score(meta, 0):.3f} after 24 steps {score(meta, 24):.3f} [untrained net {fresh:.3f}]")
