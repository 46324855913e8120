"""Fit a 1-d signal with a small sine network by full-batch L-BFGS."""
import torch
from torch import nn

torch.manual_seed(4)
torch.set_default_dtype(torch.float64)
t = torch.linspace(-1, 1, 240)[:, None]
signal = torch.sin(9 * t) * torch.exp(-t ** 2) + 0.3 * torch.sin(25 * t + 1) + 0.02 * torch.randn_like(t)
test = torch.arange(len(t)) % 4 == 0


class Wave(nn.Module):
    def __init__(self, width=24, w0=12.0):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(1, width), nn.Linear(width, width), nn.Linear(width, 1)
        self.w0 = w0
        nn.init.uniform_(self.a.weight, -1, 1)
        bound = (6 / width) ** 0.5 / w0
        nn.init.uniform_(self.b.weight, -bound, bound)

    def forward(self, x):
        x = torch.sin(self.w0 * self.a(x))
        x = torch.sin(self.w0 * self.b(x))
        return self.c(x)


net = Wave()
opt = torch.optim.LBFGS(net.parameters(), lr=1.0, max_iter=3, history_size=12, line_search_fn="strong_wolfe")


def closure():
    opt.zero_grad()
    loss = nn.functional.mse_loss(net(t[~test]), signal[~test]) + 1e-5 * sum(p.pow(2).sum() for p in net.parameters())
    loss.backward()
    return loss


for it in range(160):
    loss = opt.step(closure)
    if it % 20 == 19:
        with torch.no_grad():
            err = nn.functional.mse_loss(net(t[test]), signal[test])
            r2 = 1 - err / signal[test].var()
        print(f"iter {it + 1:3d} loss {loss.item():.3e} held-out mse {err.item():.3e} R2 {r2.item():.5f}")
