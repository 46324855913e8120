import torch
from torch import nn
from torch.optim import Optimizer


class CyclicAdam(Optimizer):
    """Adam whose moment estimates are refreshed at the start of every cycle."""

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.99), eps=1e-8, cycle=75):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, cycle=cycle))

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                st = self.state[p]
                if not st:
                    st["n"] = 0
                    st["m"] = torch.zeros_like(p)
                    st["v"] = torch.zeros_like(p)
                st["n"] += 1
                t = st["n"] % group["cycle"]
                if t == 1:
                    st["m"].zero_()
                    st["v"].zero_()
                st["m"].mul_(b1).add_(p.grad, alpha=1 - b1)
                st["v"].mul_(b2).addcmul_(p.grad, p.grad, value=1 - b2)
                mhat = st["m"] / (1 - b1 ** t)
                vhat = st["v"] / (1 - b2 ** t)
                p.sub_(group["lr"] * mhat / (vhat.sqrt() + group["eps"]))


def spiral(n, g):
    t = torch.rand(n, generator=g) * 3 + 0.3
    y = torch.randint(0, 2, (n,), generator=g)
    a = 2.2 * t + 3.14159 * y
    return torch.stack([t * a.cos(), t * a.sin()], 1) + 0.05 * torch.randn(n, 2, generator=g), y


def main():
    torch.manual_seed(41)
    g = torch.Generator().manual_seed(41)
    net = nn.Sequential(nn.Linear(2, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 2))
    opt = CyclicAdam(net.parameters(), lr=4e-3)
    for step in range(200):
        x, y = spiral(128, g)
        loss = nn.functional.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 15 == 0:
            print("step", step, "xent", loss.item())


main()
