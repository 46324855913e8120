"""Small transformer encoder forecasting a mixture of seasonal signals."""
import argparse
import torch
import torch.nn as nn


def windows(n, g, length=16):
    t = torch.arange(length + 1).float()
    f = 0.05 + 0.15 * torch.rand(n, 2, 1, generator=g)
    ph = 6.28 * torch.rand(n, 2, 1, generator=g)
    s = torch.sin(6.28 * f * t + ph).sum(1) + 0.05 * torch.randn(n, length + 1, generator=g)
    return s[:, :-1].unsqueeze(-1), s[:, -1]


class Former(nn.Module):
    def __init__(self, dim=16, length=16):
        super().__init__()
        self.inp = nn.Linear(1, dim)
        self.pos = nn.Parameter(0.02 * torch.randn(length, dim))
        layer = nn.TransformerEncoderLayer(dim, 4, 48, dropout=0.0, batch_first=True, norm_first=True)
        self.enc = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.out = nn.Linear(dim, 1)

    def forward(self, x):
        h = self.enc(self.inp(x) + self.pos)
        return self.out(h[:, -1]).squeeze(-1)


def lr_factor(step, warmup):
    """Linear ramp, then inverse square root."""
    ramp = (step + 1) / warmup
    decay = (max(step, warmup) / warmup) ** -0.5
    return max(ramp, decay)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=400)
    ap.add_argument("--warmup", type=int, default=80)
    ap.add_argument("--lr", type=float, default=0.04)
    args = ap.parse_args()
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(2)
    net = Former()
    opt = torch.optim.SGD(net.parameters(), lr=args.lr, momentum=0.9)
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: lr_factor(s, args.warmup))
    for step in range(args.steps):
        x, y = windows(24, g)
        loss = ((net(x) - y) ** 2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        if step % 25 == 0:
            print(f"step {step} mse {loss.item():.4f} lr {sched.get_last_lr()[0]:.4f}")


if __name__ == "__main__":
    main()
