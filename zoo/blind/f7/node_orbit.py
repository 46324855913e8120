"""Neural ODE for a two-species population model, with a horizon that grows during training."""
import torch
import torch.nn as nn


def simulate(n, steps, dt, gen):
    x = 0.3 + 2.2 * torch.rand(n, 2, generator=gen)
    out = [x]
    for _ in range(steps):
        prey, pred = x.unbind(1)
        d = torch.stack([1.1 * prey - prey * pred, prey * pred - 0.9 * pred], 1)
        mid = x + 0.5 * dt * d
        prey, pred = mid.unbind(1)
        x = x + dt * torch.stack([1.1 * prey - prey * pred, prey * pred - 0.9 * pred], 1)
        out.append(x)
    return torch.stack(out, 1)


class Field(nn.Module):
    def __init__(self, hidden=16):
        super().__init__()
        self.lin = nn.Linear(2, 2)
        self.quad = nn.Linear(3, 2, bias=False)
        self.net = nn.Sequential(nn.Linear(2, hidden), nn.Tanh(), nn.Linear(hidden, 2))

    def forward(self, x):
        a, b = x.unbind(-1)
        return self.lin(x) + self.quad(torch.stack([a * a, a * b, b * b], -1)) + 0.1 * self.net(x)


def integrate(field, x, steps, dt):
    traj = [x]
    for _ in range(steps):
        x = x + dt * field(x)
        traj.append(x)
    return torch.stack(traj, 1)


def horizon(step):
    return 3 if step < 150 else 80


def main(steps=210, dt=0.1, batch=32):
    torch.manual_seed(0)
    gen = torch.Generator().manual_seed(1)
    field = Field()
    opt = torch.optim.Adam(field.parameters(), lr=1e-2)
    for step in range(steps):
        h = horizon(step)
        truth = simulate(batch, h, dt, gen)
        start = truth[:, 0] + 0.02 * torch.randn(batch, 2, generator=gen)
        pred = integrate(field, start, h, dt)
        loss = ((pred - truth) ** 2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 15 == 0:
            print(f"step {step} horizon {h} loss {loss.item():.5f}")


if __name__ == "__main__":
    main()
