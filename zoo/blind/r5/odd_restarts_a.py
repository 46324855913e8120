"""Denoising auto-encoder with cosine warm restarts, then a ridge read-out on the code."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.lr_scheduler import CosineAnnealingWarmRestarts
from torch.utils.data import DataLoader, TensorDataset


def make(n, g):
    y = torch.randint(0, 5, (n,), generator=g)
    grid = torch.linspace(0, 1, 40)
    pos = 0.1 + 0.2 * y[:, None] + 0.03 * torch.randn(n, 1, generator=g)
    width = 0.05 + 0.05 * torch.rand(n, 1, generator=g)
    bump = torch.exp(-((grid - pos) / width) ** 2)
    drift = torch.randn(n, 1, generator=g) * torch.sin(6 * grid + 6 * torch.rand(n, 1, generator=g))
    return bump + 0.5 * drift, y


class DAE(nn.Module):
    def __init__(self, d=40, code=10):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(d, 96), nn.GELU(), nn.Linear(96, code))
        self.dec = nn.Sequential(nn.Linear(code, 96), nn.GELU(), nn.Linear(96, d))

    def forward(self, x):
        return self.dec(self.enc(x))


def readout(model, xa, ya, xb, yb):
    model.eval()
    with torch.no_grad():
        fa, fb = model.enc(xa), model.enc(xb)
        fa = torch.cat([fa, torch.ones(len(fa), 1)], 1)
        fb = torch.cat([fb, torch.ones(len(fb), 1)], 1)
        W = torch.linalg.solve(fa.T @ fa + 0.1 * torch.eye(fa.shape[1]), fa.T @ F.one_hot(ya, 5).float())
        return ((fb @ W).argmax(1) == yb).float().mean().item()


if __name__ == "__main__":
    torch.manual_seed(9)
    g = torch.Generator().manual_seed(9)
    x, y = make(2000, g)
    xt, yt = make(800, g)
    loader = DataLoader(TensorDataset(x), batch_size=80, shuffle=True)
    model = DAE()
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    sched = CosineAnnealingWarmRestarts(opt, T_0=4, T_mult=2, eta_min=1e-5)
    for epoch in range(28):
        model.train()
        tot = 0.0
        for k, (b,) in enumerate(loader):
            noisy = b + 0.3 * torch.randn_like(b)
            loss = F.mse_loss(model(noisy), b)
            opt.zero_grad()
            loss.backward()
            opt.step()
            sched.step(epoch + (k + 1) / len(loader))
            tot += loss.item()
        if epoch % 4 == 3:
            print(f"epoch {epoch + 1} lr {opt.param_groups[0]['lr']:.5f} denoise mse {tot / len(loader):.4f} (variance {x.var().item():.3f}) read-out acc {readout(model, x, y, xt, yt):.4f}")
