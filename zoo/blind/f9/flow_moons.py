import math

import torch
from sklearn.datasets import make_moons
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(28)


class Coupling(nn.Module):
    def __init__(self, flip, width=64):
        super().__init__()
        self.flip = flip
        self.net = nn.Sequential(nn.Linear(1, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 2))

    def forward(self, x):
        a, b = x.chunk(2, dim=1)
        if self.flip:
            a, b = b, a
        s, t = self.net(a).chunk(2, dim=1)
        b = b * torch.exp(s) + t
        out = torch.cat([b, a] if self.flip else [a, b], dim=1)
        return out, s.squeeze(1)


class Flow(nn.Module):
    def __init__(self, depth=6):
        super().__init__()
        self.layers = nn.ModuleList([Coupling(i % 2 == 1) for i in range(depth)])

    def log_prob(self, x):
        total = torch.zeros(len(x))
        for layer in self.layers:
            x, s = layer(x)
            total = total + s
        base = -0.5 * x.pow(2).sum(1) - math.log(2 * math.pi)
        return base + total


def main():
    data, _ = make_moons(5000, noise=0.08, random_state=1)
    data = torch.tensor(data, dtype=torch.float32)
    flow = Flow()
    optimizer = torch.optim.SGD(flow.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.CyclicLR(optimizer, base_lr=0.005, max_lr=0.4, step_size_up=300)
    for step in range(600):
        batch = data[torch.randint(len(data), (128,))]
        loss = -flow.log_prob(batch).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 25 == 0:
            print(f"step {step} nll {loss.item():.4f}")


if __name__ == "__main__":
    main()
