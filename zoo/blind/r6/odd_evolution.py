"""Evolution strategy: no backward pass and no gradients, antithetic perturbations of the parameters, rank-shaped fitness.
Goal: balance the cart-pole for at least 180 of 200 steps on average."""
import torch
import torch.nn as nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

torch.set_num_threads(1)
torch.manual_seed(29)
policy = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)).requires_grad_(False)
base = parameters_to_vector(policy.parameters())
n_par = base.numel()


def batched_policy(theta, s):
    w1, b1, w2, b2 = theta.split([32, 8, 8, 1], 1)
    h = torch.tanh(torch.einsum("pij,pnj->pni", w1.view(-1, 8, 4), s) + b1[:, None])
    return torch.einsum("pnj,pj->pn", h, w2) + b2


def episode_steps(theta, n_env=6, horizon=200):
    P = len(theta)
    s = (torch.rand(P, n_env, 4) - 0.5) * 0.2
    alive = torch.ones(P, n_env)
    total = torch.zeros(P, n_env)
    for _ in range(horizon):
        force = torch.where(batched_policy(theta, s) > 0, 10.0, -10.0)
        x, v, a, w = s.unbind(-1)
        tmp = (force + 0.05 * w ** 2 * a.sin()) / 1.1
        acc = (9.8 * a.sin() - a.cos() * tmp) / (0.5 * (4 / 3 - 0.1 * a.cos() ** 2 / 1.1))
        s = torch.stack([x + 0.02 * v, v + 0.02 * (tmp - 0.05 * acc * a.cos() / 1.1), a + 0.02 * w, w + 0.02 * acc], -1)
        alive = alive * ((s[..., 0].abs() < 2.4) & (s[..., 2].abs() < 0.21)).float()
        total += alive
    return total.mean(1)


sigma, lr = 0.15, 0.25
for gen in range(1, 41):
    eps = torch.randn(24, n_par)
    eps = torch.cat([eps, -eps])
    fit = episode_steps(base + sigma * eps)
    shaped = fit.argsort().argsort().float() / (len(fit) - 1) - 0.5
    base = base + lr / sigma / len(fit) * (shaped @ eps) * 2
    if gen % 4 == 0:
        print(f"generation {gen} population mean {fit.mean():.1f} best {fit.max():.1f}")
vector_to_parameters(base, policy.parameters())
print(f"final policy: {episode_steps(base[None], n_env=50).item():.1f} of 200 steps")
