"""Adaptive echo model on a stream of radar pulses that is seen only once.

There are no epochs and no training set: a generator yields new pulses for ever, each
batch is scored before it is used (progressive validation), then learned from and
thrown away. Training and test loss are therefore nearly equal all the time. The scene
drifts slowly until step 900; the network follows it and forgets the old scene, which is
what we want. The old scene is scored at the end only to show that.
"""
import math

import torch
import torch.nn as nn

SAMPLES, BATCH, TOTAL, REPORT = 64, 128, 1600, 100
DRIFT = (400, 900)


def progress(step):
    return min(max((step - DRIFT[0]) / (DRIFT[1] - DRIFT[0]), 0.0), 1.0)


def pulses(n, step, generator):
    """Received pulses and the (log) distance and speed of the target."""
    u = lambda lo, hi: lo + (hi - lo) * torch.rand(n, 1, generator=generator)
    distance, speed, size = u(0.1, 0.8), u(-1, 1), u(0.5, 1.5)
    t = torch.linspace(0, 1, SAMPLES)[None]
    width = 0.05 + 0.03 * progress(step)                  # the transmitter ages
    carrier = 2 * math.pi * (12 + 4 * speed) * (t - distance)
    echo = size * torch.exp(-0.5 * ((t - distance) / width) ** 2) * torch.cos(carrier)
    ground = (0.2 + 0.3 * progress(step)) * torch.cos(2 * math.pi * 5 * t + u(0, 6.283))
    noise = 0.15 * torch.randn(n, SAMPLES, generator=generator)
    return echo + ground + noise, torch.cat([(distance - 0.45) / 0.2, speed / 0.58], 1)


class EchoNet(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.net = nn.Sequential(nn.Conv1d(1, width, 9, padding=4), nn.ReLU(), nn.MaxPool1d(2),
                                 nn.Conv1d(width, width, 7, padding=3), nn.ReLU(), nn.MaxPool1d(2),
                                 nn.Flatten(), nn.Linear(width * SAMPLES // 4, 64), nn.ReLU(), nn.Linear(64, 2))

    def forward(self, x):
        return self.net(x[:, None])


def squared(model, x, y):
    return ((model(x) - y) ** 2).mean()


@torch.no_grad()
def score(model, step, seed):
    """MSE on 2000 separate pulses drawn under the conditions of this step."""
    x, y = pulses(2000, step, torch.Generator().manual_seed(seed))
    model.eval()
    return squared(model, x, y).item()


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    source = torch.Generator().manual_seed(77)
    model = EchoNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    # constant while the scene drifts, linear decay once it has settled
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda s: 1.0 if s < DRIFT[1] else max(0.02, 1 - (s - DRIFT[1]) / (TOTAL - DRIFT[1])))
    before = 0.0
    print("targets have unit variance: MSE of the mean is 1.0")
    for step in range(1, TOTAL + 1):
        x, y = pulses(BATCH, step, source)
        model.train()
        loss = squared(model, x, y)             # on pulses that were never seen before
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        before += loss.item()
        if step % REPORT == 0:
            print(f"step {step:5d} pulses {step * BATCH:7d} drift {progress(step):.2f} progressive MSE "
                  f"{before / REPORT:.4f} separate pulses MSE {score(model, step, 1000 + step):.4f}")
            before = 0.0
    print(f"test: MSE {score(model, TOTAL, 5):.4f} on the settled scene, {score(model, 0, 6):.4f} on the old scene")


if __name__ == "__main__":
    main()
