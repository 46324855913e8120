import torch
import torch.nn as nn


class CenteredRMS:
    def __init__(self, params, lr=1e-3, decay=0.9, eps=1e-4):
        self.params = list(params)
        self.lr, self.decay, self.eps = lr, decay, eps
        self.state = [{"sq": torch.zeros_like(p), "avg": torch.zeros_like(p)} for p in self.params]

    def zero_grad(self):
        for p in self.params:
            p.grad = None

    @torch.no_grad()
    def step(self):
        for p, s in zip(self.params, self.state):
            g = p.grad
            s['sq'].mul_(self.decay).addcmul_(g, g, value=1 - self.decay)
            s['avg'].mul_(self.decay).add_(g, alpha=1 - self.decay)
            denom = (s['sq'] - s['avg'] * s['avg']).sqrt() + self.eps
            p.sub_(self.lr * torch.clamp(g / denom, -10, 10))


class Linear(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.w = nn.Parameter(torch.zeros(d, 1))
        self.b = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        return x @ self.w + self.b


def data(n=500, d=12):
    g = torch.Generator().manual_seed(2)
    x = torch.randn(n, d, generator=g)
    y = 40 + x @ torch.randn(d, 1, generator=g) + 0.1 * torch.randn(n, 1, generator=g)
    return x, y


def main():
    x, y = data()
    model = Linear(12)
    opt = CenteredRMS(model.parameters(), lr=3e-3)
    for it in range(600):
        loss = (model(x) - y).abs().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if it % 40 == 0:
            print(f"iter {it} mae {loss.item():.4f}")


if __name__ == "__main__":
    main()
