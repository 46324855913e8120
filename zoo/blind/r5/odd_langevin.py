# Stochastic gradient Langevin dynamics: noise is added to every update on purpose and the
# chain is not meant to settle; predictions average over the visited weights.
import math
import torch

torch.manual_seed(15)
torch.set_num_threads(1)
N = 400
x = torch.rand(N, 2) * 4 - 2
true = lambda t: torch.sin(1.5 * t[:, 0]) + 0.4 * t[:, 1]
y = true(x) + 0.3 * torch.randn(N)
sizes = [(24, 2), (24,), (1, 24), (1,)]
W = [(torch.randn(s) * (0.7 if len(s) > 1 else 0.0)).requires_grad_() for s in sizes]


def net(t, w):
    return (torch.tanh(t @ w[0].T + w[1]) @ w[2].T + w[3]).squeeze(1)


xt = torch.rand(600, 2) * 4 - 2
yt = true(xt) + 0.3 * torch.randn(600)
total, kept = torch.zeros(600), 0
for it in range(1, 4001):
    i = torch.randint(0, N, (40,))
    lik = -((y[i] - net(x[i], W)) ** 2).mean() * N / (2 * 0.09)
    prior = -0.5 * sum((w ** 2).sum() for w in W)
    u = -(lik + prior)
    g = torch.autograd.grad(u, W)
    eta = 2e-5 / (1 + it / 1000) ** 0.33
    with torch.no_grad():
        for w, gw in zip(W, g):
            w.add_(-0.5 * eta * gw + math.sqrt(eta) * torch.randn_like(w))
        if it > 1500 and it % 10 == 0:
            total += net(xt, W)
            kept += 1
        if it % 500 == 0 or it == 1:
            one = (net(xt, W) - yt).pow(2).mean().sqrt().item()
            ens = (total / max(kept, 1) - yt).pow(2).mean().sqrt().item()
            print(f"it {it:4d}  potential {u.item():9.1f}  rmse one sample {one:.4f}  average of {kept} {ens:.4f}")
print(f"final rmse of the average {ens:.4f} (noise 0.3, target sd {yt.std():.3f})")
