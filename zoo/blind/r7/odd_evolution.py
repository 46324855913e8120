"""Evolution strategies: no backward pass, gradients are never computed, weights are written by hand."""
import torch
import torch.nn as nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

torch.manual_seed(22)
torch.set_num_threads(1)

net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
for p in net.parameters():
    p.requires_grad_(False)
DIM = parameters_to_vector(net.parameters()).numel()


def unpack(theta):
    """a batch of parameter vectors as batched weights"""
    w1, b1, w2, b2 = theta.split([32, 8, 8, 1], dim=1)
    return w1.view(-1, 8, 4), b1, w2, b2


def rollout(theta, seed, steps=60):
    """Balance a pole for all candidates at once; the score is not differentiable (thresholds)."""
    n = len(theta)
    g = torch.Generator().manual_seed(seed)
    state = (0.1 * torch.randn(1, 4, generator=g)).expand(n, 4).clone()
    w1, b1, w2, b2 = unpack(theta)
    alive, score = torch.ones(n), torch.zeros(n)
    for _ in range(steps):
        h = torch.tanh(torch.einsum("noi,ni->no", w1, state) + b1)
        push = torch.where((h * w2).sum(1) + b2[:, 0] > 0, 10.0, -10.0)
        x, v, a, w = state.unbind(1)
        acc_a = (9.8 * a - push * 0.7) / 0.7
        acc_x = push * 0.9 - 0.05 * acc_a
        state = torch.stack([x + 0.04 * v, v + 0.04 * acc_x, a + 0.04 * w, w + 0.04 * acc_a], 1)
        alive = alive * ((state[:, 2].abs() < 0.4) & (state[:, 0].abs() < 2.4)).float()
        score += alive
    return score


theta = parameters_to_vector(net.parameters()).clone()
SIGMA, LR, POP = 0.3, 0.25, 60
for gen in range(40):
    eps = torch.randn(POP // 2, DIM)
    eps = torch.cat([eps, -eps])
    score = torch.stack([rollout(theta + SIGMA * eps, seed=gen * 3 + k) for k in range(3)]).mean(0)
    rank = score.argsort().argsort().float() / (POP - 1) - 0.5
    theta = theta + LR * (rank[:, None] * eps).mean(0) / SIGMA * 4
    if gen % 4 == 3:
        held = torch.stack([rollout(theta[None], seed=10000 + k) for k in range(8)]).mean().item()
        print(f"generation {gen:2d} population mean {score.mean().item():.2f} best {score.max().item():.2f} held-out {held:.2f}")

vector_to_parameters(theta, net.parameters())
final = torch.stack([rollout(theta[None], seed=50000 + k) for k in range(30)]).mean().item()
print(f"gradients present: {any(p.grad is not None for p in net.parameters())}")
print(f"final mean steps balanced {final:.2f} of 60")
