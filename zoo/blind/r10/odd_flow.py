"""Density of the joint angles of a small robot arm with a coupling flow.

The loss is the mean negative log likelihood in nats. Angles are in units of pi and
concentrate near a thin set, so densities are far above one and the loss is negative.
The simulator is known up to its noise; a fitted Gaussian is the baseline.
"""
import math

import torch
import torch.nn as nn

DIM = 4


def angles(n, seed):
    """Reachable poses: the elbow and wrist follow the shoulder, with small errors."""
    g = torch.Generator().manual_seed(seed)
    s = torch.rand(n, generator=g) * 2 - 1
    up = torch.where(torch.rand(n, generator=g) < 0.5, 1.0, -1.0)
    elbow = up * 0.35 * torch.cos(1.5 * s)
    wrist = -0.6 * elbow + 0.15 * torch.sin(3 * s)
    roll = 0.3 * s * up
    x = torch.stack([0.4 * s, elbow, wrist, roll], 1)
    return x + 0.02 * torch.randn(n, DIM, generator=g)


class Coupling(nn.Module):
    def __init__(self, mask, hidden=64):
        super().__init__()
        self.register_buffer("mask", mask)
        self.net = nn.Sequential(nn.Linear(DIM, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh(),
                                 nn.Linear(hidden, 2 * DIM))
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)

    def forward(self, x):
        log_scale, shift = self.net(x * self.mask).chunk(2, dim=1)
        log_scale = 2.0 * torch.tanh(log_scale / 2.0) * (1 - self.mask)
        shift = shift * (1 - self.mask)
        return x * log_scale.exp() + shift, log_scale.sum(1)


class Flow(nn.Module):
    def __init__(self, mean, std, layers=8):
        super().__init__()
        self.register_buffer("mean", mean)
        self.register_buffer("std", std)
        masks = [torch.tensor([(i // 2 ** (k % 2) + k // 2) % 2 for i in range(DIM)]).float() for k in range(layers)]
        self.layers = nn.ModuleList(Coupling(m) for m in masks)

    def log_prob(self, x):
        z = (x - self.mean) / self.std
        total = -self.std.log().sum()               # change of units counts as well
        for layer in self.layers:
            z, logdet = layer(z)
            total = total + logdet
        return total - 0.5 * (z ** 2).sum(1) - 0.5 * DIM * math.log(2 * math.pi)


@torch.no_grad()
def nll(model, x):
    model.eval()
    return -model.log_prob(x).mean().item()


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    train, val, test = angles(10000, 1), angles(2000, 2), angles(4000, 3)
    gauss = torch.distributions.MultivariateNormal(train.mean(0), torch.cov(train.T))
    print(f"fitted Gaussian: val NLL {-gauss.log_prob(val).mean():.3f}")
    model = Flow(train.mean(0), train.std(0))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    epochs, batch = 14, 200
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=epochs * len(train) // batch)
    for epoch in range(1, epochs + 1):
        model.train()
        total = 0.0
        for rows in torch.randperm(len(train)).split(batch):
            loss = -model.log_prob(train[rows]).mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            schedule.step()
            total += loss.item() * len(rows)
        print(f"epoch {epoch:2d} train NLL {total / len(train):.3f} val NLL {nll(model, val):.3f}")
    print(f"test NLL {nll(model, test):.3f}")


if __name__ == "__main__":
    main()
