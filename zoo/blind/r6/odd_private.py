"""DP-SGD: per-sample gradients are clipped and Gaussian noise several times the size of the signal is added to every step.
The loss is noisy and stays above that of a normal run. Goal: test accuracy above 0.85 under the noise."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.func import functional_call, grad, vmap

torch.set_num_threads(1)
torch.manual_seed(31)
d = load_digits()
X, Y = torch.tensor(d.data / 16 - 0.3, dtype=torch.float32), torch.tensor(d.target)
perm = torch.randperm(len(X))
tr, te = perm[:1400], perm[1400:]
net = nn.Sequential(nn.Linear(64, 48), nn.Tanh(), nn.Linear(48, 10))
params = {k: v.detach().clone() for k, v in net.named_parameters()}
CLIP, SIGMA, LR, BATCH = 1.0, 3.0, 0.8, 200


def one_loss(p, x, y):
    return F.cross_entropy(functional_call(net, p, (x[None],)), y[None])


per_sample = vmap(grad(one_loss), in_dims=(None, 0, 0))
steps = 700
for step in range(1, steps + 1):
    idx = tr[torch.rand(len(tr)) < BATCH / len(tr)]
    g = per_sample(params, X[idx], Y[idx])
    norm = sum(v.flatten(1).pow(2).sum(1) for v in g.values()).sqrt()
    scale = (CLIP / (norm + 1e-9)).clamp(max=1.0)
    lr = LR * (1 - 0.9 * step / steps)
    for k in params:
        s = torch.einsum("b,b...->...", scale, g[k]) + CLIP * SIGMA * torch.randn_like(params[k])
        params[k] = params[k] - lr * s / BATCH
    if step % 70 == 0:
        out = functional_call(net, params, (X[te],))
        print(f"step {step} mean gradient norm {norm.mean():.2f} test loss {F.cross_entropy(out, Y[te]):.4f} acc {(out.argmax(1) == Y[te]).float().mean():.3f}")
