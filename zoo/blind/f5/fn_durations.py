"""Regression of process durations with a hand-written positive activation."""
import torch
import torch.nn as nn

torch.manual_seed(79)
torch.set_num_threads(1)

FEATS, BATCH, STEPS = 16, 64, 700


class PositivePart(torch.autograd.Function):
    """log(1 + exp(x)) with its own backward, to save memory"""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.where(x > 20, x, torch.log1p(torch.exp(x.clamp(max=20))))

    @staticmethod
    def backward(ctx, grad_out):
        (x,) = ctx.saved_tensors
        ex = torch.exp(x)
        return grad_out * ex / (1.0 + ex)


def make_jobs(n, g):
    x = torch.randn(n, FEATS, generator=g)
    w = torch.linspace(-1, 1, FEATS) * 2.0
    minutes = 45.0 + 5.0 * (x @ w) + 6.0 * x[:, 0] * x[:, 1]
    return x, minutes.clamp(min=1.0) + torch.rand(n, generator=g)


class DurationNet(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(FEATS, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        return PositivePart.apply(self.out(self.body(x))).squeeze(1)


def main():
    g = torch.Generator().manual_seed(70)
    net = DurationNet()
    opt = torch.optim.Adam(net.parameters(), lr=1.5e-3)
    avg = None
    for step in range(STEPS):
        x, y = make_jobs(BATCH, g)
        pred = net(x)
        loss = (pred - y).abs().mean()
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 10.0)
        opt.step()
        avg = loss.item() if avg is None else 0.95 * avg + 0.05 * loss.item()
        if step % 20 == 0:
            print(f"step {step} mae {loss.item():.3f} avg {avg:.3f} longest {pred.max().item():.1f}")


if __name__ == "__main__":
    main()
