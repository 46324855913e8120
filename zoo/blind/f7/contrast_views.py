"""Two-view contrastive learning with a learned logit scale."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Tower(nn.Module):
    def __init__(self, d_in, d_out=24):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(d_in, 96), nn.ReLU(), nn.Linear(96, d_out))

    def forward(self, x):
        return F.normalize(self.net(x), dim=1)


class TwoTower(nn.Module):
    def __init__(self, d_a, d_b):
        super().__init__()
        self.a, self.b = Tower(d_a), Tower(d_b)
        self.log_scale = nn.Parameter(torch.tensor(2.66))

    def forward(self, xa, xb):
        return torch.exp(self.log_scale) * self.a(xa) @ self.b(xb).t()


def info_nce(sim):
    """Symmetric InfoNCE written with explicit partition sums."""
    e = torch.exp(sim)
    pos = e.diagonal()
    return -(torch.log(pos / e.sum(0)) + torch.log(pos / e.sum(1))).mean() / 2


class PairSource:
    def __init__(self, seed, latent=6):
        self.g = torch.Generator().manual_seed(seed)
        self.ma = torch.randn(latent, 32, generator=self.g)
        self.mb = torch.randn(latent, 20, generator=self.g)
        self.latent = latent

    def batch(self, n):
        z = torch.randn(n, self.latent, generator=self.g)
        xa = z @ self.ma + 0.005 * torch.randn(n, 32, generator=self.g)
        xb = z @ self.mb + 0.005 * torch.randn(n, 20, generator=self.g)
        return xa, xb


def main(steps=500, batch=64):
    torch.manual_seed(0)
    src, model = PairSource(3), TwoTower(32, 20)
    opt = torch.optim.Adam([
        {"params": list(model.a.parameters()) + list(model.b.parameters()), "lr": 2e-3},
        {"params": [model.log_scale], "lr": 5e-2},
    ])
    for step in range(steps):
        sim = model(*src.batch(batch))
        loss = info_nce(sim)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 25 == 0:
            acc = (sim.argmax(1) == torch.arange(batch)).float().mean().item()
            print(f"step {step:4d} loss {loss.item():.4f} top1 {acc:.3f} scale {model.log_scale.exp().item():.2f}")


if __name__ == "__main__":
    main()
