"""Differentially private training: every example's gradient is bounded to norm 0.25, noise is added to the sum (sigma 0.8),
examples are drawn by Poisson sampling."""
import torch
import torch.nn.functional as F
from torch.func import functional_call, grad, vmap
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(19)
N, D, K = 8000, 30, 4
centres = torch.randn(K, D) * 0.42
y = torch.randint(0, K, (N + 2000,))
x = centres[y] + torch.randn(N + 2000, D)
x_tr, y_tr, x_te, y_te = x[:N], y[:N], x[N:], y[N:]

model = nn.Sequential(nn.Linear(D, 32), nn.Tanh(), nn.Linear(32, K))
params = {k: v.detach() for k, v in model.named_parameters()}
opt = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.5, weight_decay=1e-2)


def one_loss(p, xi, yi):
    return F.cross_entropy(functional_call(model, p, (xi[None],)), yi[None])


per_example = vmap(grad(one_loss), in_dims=(None, 0, 0))
RATE, BOUND, SIGMA, STEPS = 256 / N, 0.25, 0.8, 700
names = [k for k, _ in model.named_parameters()]
for step in range(1, STEPS + 1):
    pick = torch.rand(N) < RATE
    xb, yb = x_tr[pick], y_tr[pick]
    g = per_example(params, xb, yb)
    norm = torch.sqrt(sum(v.flatten(1).pow(2).sum(1) for v in g.values()))
    factor = (BOUND / norm).clamp(max=1.0)
    for k, p in model.named_parameters():
        total = torch.einsum("b,b...->...", factor, g[k])
        p.grad = (total + SIGMA * BOUND * torch.randn_like(p)) / (RATE * N)
    opt.step()
    if step % 50 == 0 or step == 1:
        with torch.no_grad():
            batch_loss = F.cross_entropy(model(xb), yb)
            test = model(x_te)
        print(f"step {step:3d} drawn {len(xb):3d} bounded {(norm > BOUND).float().mean():.2f}  loss {batch_loss:.3f}  "
              f"test loss {F.cross_entropy(test, y_te):.3f} acc {(test.argmax(1) == y_te).float().mean():.3f}")
