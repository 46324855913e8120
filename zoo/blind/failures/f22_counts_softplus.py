import numpy as np
import torch
import torch.nn as nn


class SmoothRamp(torch.autograd.Function):
    """log(1 + exp(x)) with a cheap backward."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.clamp(x, min=0) + torch.log1p(torch.exp(-x.abs()))

    @staticmethod
    def backward(ctx, grad):
        x, = ctx.saved_tensors
        e = torch.exp(x)
        return grad * e / (1 + e)


class DemandNet(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.a = nn.Linear(d, 32)
        self.b = nn.Linear(32, 1)

    def forward(self, x):
        return SmoothRamp.apply(self.b(torch.tanh(self.a(x)))).squeeze(1)


def batches(x, y, size, rng):
    order = rng.permutation(len(x))
    for s in range(0, len(x), size):
        k = order[s:s + size]
        yield torch.from_numpy(x[k]), torch.from_numpy(y[k])


def main():
    rng = np.random.default_rng(10)
    torch.manual_seed(10)
    x = rng.standard_normal((1600, 6)).astype(np.float32)
    y = (75 + 22 * np.tanh(x[:, 0]) + 14 * x[:, 1] + 3 * rng.standard_normal(1600)).clip(0).astype(np.float32)
    net = DemandNet(6)
    opt = torch.optim.Adam(net.parameters(), lr=0.03)
    for epoch in range(6):
        tot = []
        for i, (xb, yb) in enumerate(batches(x, y, 32, rng)):
            loss = (net(xb) - yb).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            tot.append(loss.item())
            if i % 10 == 0:
                print(f"epoch {epoch} batch {i:2d} mse {loss.item():.3f}")


main()
