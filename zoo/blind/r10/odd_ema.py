"""Phase recognition in X-ray powder patterns; the averaged weights are what we ship.

The learning rate stays high and constant on purpose, so the raw weights jump about.
An exponential moving average of the weights (and copies of the batch norm buffers)
is validated, selected and tested; the raw weights are shown for comparison.
"""
import copy

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

BINS, PHASES = 128, 12


def patterns(n, seed, library):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, PHASES, n)
    grid = np.arange(BINS)
    x = np.zeros((n, BINS))
    for i in range(n):
        places, heights = library[y[i]]
        shift, width = rng.normal(0, 0.8), rng.uniform(1.0, 2.0)
        texture = heights * rng.lognormal(0, 0.6, len(heights))
        x[i] = (texture[:, None] * np.exp(-0.5 * ((grid - places[:, None] - shift) / width) ** 2)).sum(0)
        x[i] += 0.6 * np.exp(-grid / rng.uniform(20, 60))
    x = rng.poisson(8 * x + 3) / 8.0
    return torch.tensor(np.sqrt(x), dtype=torch.float32)[:, None], torch.tensor(y)


class PatternNet(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        def block(a, b):
            return [nn.Conv1d(a, b, 7, padding=3), nn.BatchNorm1d(b), nn.ReLU(), nn.MaxPool1d(2)]
        self.body = nn.Sequential(*block(1, width), *block(width, width), *block(width, width))
        self.head = nn.Linear(width * BINS // 8, PHASES)

    def forward(self, x):
        return self.head(self.body(x).flatten(1))


class Average:
    def __init__(self, model, decay):
        self.model = copy.deepcopy(model).eval().requires_grad_(False)
        self.decay, self.steps = decay, 0

    @torch.no_grad()
    def update(self, model):
        self.steps += 1
        decay = min(self.decay, (1 + self.steps) / (10 + self.steps))
        for p, q in zip(self.model.parameters(), model.parameters()):
            p.lerp_(q, 1 - decay)
        for p, q in zip(self.model.buffers(), model.buffers()):
            p.copy_(q)


@torch.no_grad()
def evaluate(model, x, y):
    training = model.training
    model.eval()
    logits = torch.cat([model(part) for part in x.split(500)])
    model.train(training)
    return F.cross_entropy(logits, y).item(), (logits.argmax(1) == y).float().mean().item()


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    rng = np.random.default_rng(8)
    common = rng.uniform(10, BINS - 10, 14)
    library = [(rng.choice(common, 5, replace=False) + rng.normal(0, 1.5, 5), rng.uniform(0.3, 1.2, 5))
               for _ in range(PHASES)]
    train, val, test = (patterns(n, s, library) for n, s in ((2400, 1), (600, 2), (1200, 3)))
    mean, std = train[0].mean(), train[0].std()
    train, val, test = [((x - mean) / std, y) for x, y in (train, val, test)]

    model = PatternNet()
    average = Average(model, decay=0.98)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.15, momentum=0.9, weight_decay=5e-4)
    best, state = float("inf"), None
    for epoch in range(1, 13):
        model.train()
        total = 0.0
        for rows in torch.randperm(len(train[0])).split(48):
            loss = F.cross_entropy(model(train[0][rows]), train[1][rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            average.update(model)
            total += loss.item() * len(rows)
        raw, smooth = evaluate(model, *val), evaluate(average.model, *val)
        if smooth[0] < best:
            best, state = smooth[0], copy.deepcopy(average.model.state_dict())
        print(f"epoch {epoch:2d} train loss {total / len(train[0]):.4f} | val raw loss {raw[0]:.4f} acc {raw[1]:.3f} "
              f"| val average loss {smooth[0]:.4f} acc {smooth[1]:.3f}")
    average.model.load_state_dict(state)
    loss, acc = evaluate(average.model, *test)
    print(f"test (average) loss {loss:.4f} acc {acc:.3f}")


if __name__ == "__main__":
    main()
