import copy
import torch
import torch.nn as nn


class WindowAverage:
    """mean of the weights over the current window"""

    def __init__(self, model):
        self.total = {k: torch.zeros_like(v) for k, v in model.state_dict().items()}
        self.count = torch.tensor(0.0)

    def add(self, model):
        for k, v in model.state_dict().items():
            self.total[k] += v
        self.count += 1

    def reset(self):
        for t in self.total.values():
            t.zero_()
        self.count.zero_()

    def mean(self):
        return {k: t / self.count for k, t in self.total.items()}


def data(n=1500):
    g = torch.Generator().manual_seed(1)
    x = torch.rand(n, 3, generator=g) * 4 - 2
    y = torch.sin(x[:, :1] * 2) + x[:, 1:2] * x[:, 2:]
    return x, y


def evaluate(model, x, y):
    with torch.no_grad():
        return nn.functional.mse_loss(model(x), y).item()


def main(steps=300, avg_every=5, window=60, restart_every=90):
    torch.manual_seed(6)
    x, y = data()
    xv, yv = x[1200:], y[1200:]
    model = nn.Sequential(nn.Linear(3, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
    avg = WindowAverage(model)
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for step in range(1, steps + 1):
        i = torch.randint(0, 1200, (48,))
        loss = nn.functional.mse_loss(model(x[i]), y[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % avg_every == 0:
            avg.add(model)
        if step % window == 0:
            print(f"step {step}: train {loss.item():.4f} val {evaluate(model, xv, yv):.4f}")
            avg.reset()
        if step % restart_every == 0:
            model.load_state_dict(avg.mean())


if __name__ == "__main__":
    main()
