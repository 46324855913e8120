"""Map one point cloud onto another by minimising an entropic transport cost."""
import math

import torch
import torch.nn as nn

torch.manual_seed(41)
torch.set_num_threads(1)

POINTS, STEPS, SINKHORN_ITERS = 96, 360, 25


def source(n):
    return torch.randn(n, 2) * 0.5


def target(n):
    k = torch.randint(0, 5, (n,)).float()
    ang = 2 * math.pi * k / 5
    centre = 2.0 * torch.stack([ang.cos(), ang.sin()], 1)
    return centre + 0.15 * torch.randn(n, 2)


class Transport(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU(), nn.Linear(96, 2))

    def forward(self, x):
        return x + self.net(x)


def regularisation(step):
    """start smooth, end sharp"""
    return max(1.0 * 0.985 ** step, 1e-3)


def transport_cost(x, y, eps):
    cost = torch.cdist(x, y).pow(2)
    kernel = torch.exp(-cost / eps)
    a = torch.full((len(x),), 1.0 / len(x))
    b = torch.full((len(y),), 1.0 / len(y))
    v = torch.ones_like(b)
    for _ in range(SINKHORN_ITERS):
        u = a / (kernel @ v)
        v = b / (kernel.t() @ u)
    plan = u[:, None] * kernel * v[None, :]
    return (plan * cost).sum()


def main():
    net = Transport()
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    history = []
    for step in range(STEPS):
        eps = regularisation(step)
        x, y = source(POINTS), target(POINTS)
        moved = net(x)
        effort = (moved - x).pow(2).mean()
        loss = transport_cost(moved, y, eps) + 0.01 * effort
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 2.0)
        opt.step()
        history.append(loss.item())
        if step % 15 == 0:
            recent = sum(history[-15:]) / len(history[-15:])
            print(f"step {step} eps {eps:.4f} loss {loss.item():.4f} recent {recent:.4f}")


if __name__ == "__main__":
    main()
