import math

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(3)


class Solution(nn.Module):
    def __init__(self, width=40):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(2, width), nn.Tanh(),
            nn.Linear(width, width), nn.Tanh(),
            nn.Linear(width, 1),
        )

    def forward(self, x, t):
        return self.layers(torch.cat([x, t], dim=1))


def residual(model, x, t):
    x = x.requires_grad_(True)
    t = t.requires_grad_(True)
    u = model(x, t)
    ones = torch.ones_like(u)
    u_t, u_x = torch.autograd.grad(u, (t, x), ones, create_graph=True)[0:2]
    u_xx = torch.autograd.grad(u_x, x, ones, create_graph=True)[0]
    return u_t - 0.1 * u_xx


def boundary(model, n=32):
    x = torch.rand(n, 1)
    start = model(x, torch.zeros(n, 1)) - torch.sin(math.pi * x)
    t = torch.rand(n, 1)
    left = model(torch.zeros(n, 1), t)
    right = model(torch.ones(n, 1), t)
    return start.pow(2).mean() + left.pow(2).mean() + right.pow(2).mean()


def main():
    model = Solution()
    optimizer = torch.optim.SGD(model.parameters(), lr=5e-3)
    weight = 1.0
    for step in range(600):
        interior = residual(model, torch.rand(64, 1), torch.rand(64, 1)).pow(2).mean()
        edge = boundary(model)
        loss = interior + weight * edge
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        weight *= 1.015
        if step % 25 == 0:
            print(f"step {step} interior {interior.item():.5f} edge {edge.item():.5f}")


if __name__ == "__main__":
    main()
