"""Learn predator-prey dynamics with a neural ODE."""
import torch
import torch.nn as nn


def field(z):
    x, y = z[..., 0], z[..., 1]
    return torch.stack([0.9 * x - 0.6 * x * y, 0.5 * x * y - 0.7 * y], -1)


def rk4(f, z, dt):
    a = f(z)
    b = f(z + 0.5 * dt * a)
    c = f(z + 0.5 * dt * b)
    d = f(z + dt * c)
    return z + dt * (a + 2 * b + 2 * c + d) / 6


def trajectories(n, steps, dt):
    z = 0.6 + 1.2 * torch.rand(n, 2)
    path = [z]
    for _ in range(steps):
        for _ in range(4):
            z = rk4(field, z, dt / 4)
        path.append(z)
    return torch.stack(path, 1)


class Vector(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(2, 2)
        self.quad = nn.Linear(3, 2, bias=False)
        self.deep = nn.Sequential(nn.Linear(2, 24), nn.ReLU(), nn.Linear(24, 2))

    def forward(self, z):
        x, y = z[..., :1], z[..., 1:]
        q = torch.cat([x * x, x * y, y * y], -1)
        return self.lin(z) + self.quad(q) + self.deep(z)


class Curriculum:
    def __init__(self, first=2, every=4):
        self.horizon = first
        self.every = every

    def update(self, step):
        if step > 0 and step % self.every == 0:
            self.horizon += 3


def rollout(f, z, horizon, dt):
    out = []
    for _ in range(horizon):
        z = z + dt * f(z)
        out.append(z)
    return torch.stack(out, 1)


def main():
    torch.manual_seed(3)
    dt = 0.2
    data = trajectories(128, 160, dt)
    net = Vector()
    opt = torch.optim.Adam(net.parameters(), lr=2e-2)
    plan = Curriculum()
    for step in range(135):
        plan.update(step)
        pick = torch.randint(0, 128, (24,))
        path = data[pick]
        pred = rollout(net, path[:, 0], plan.horizon, dt)
        loss = (pred - path[:, 1:plan.horizon + 1]).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 10 == 0:
            print(f"step {step:3d} horizon {plan.horizon:3d} mse {loss.item():.5f}")


if __name__ == "__main__":
    main()
