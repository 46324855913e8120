import torch
import torch.nn as nn


class Schedule:
    def __init__(self, T=1500):
        self.T = T
        s = torch.linspace(0, 1, T)
        self.abar = torch.cos(s * torch.pi / 2 * 0.98) ** 2

    def sample_t(self, n):
        return torch.randint(0, self.T, (n,))


class Denoiser(nn.Module):
    """Predicts the clean sample; noise estimate is derived from it."""

    def __init__(self, dim=2, width=128, T=1500):
        super().__init__()
        self.T = T
        self.net = nn.Sequential(nn.Linear(dim + 8, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, dim))

    def forward(self, x, t):
        ph = (t.float() / self.T).unsqueeze(1) * torch.tensor([1.0, 2.0, 4.0, 8.0]) * torch.pi
        return self.net(torch.cat([x, ph.sin(), ph.cos()], 1))


def two_moons(n):
    a = torch.rand(n) * torch.pi
    up = torch.rand(n) < 0.5
    x = torch.where(up, a.cos(), 1 - a.cos())
    y = torch.where(up, a.sin(), 0.5 - a.sin())
    return torch.stack([x, y], 1) + 0.05 * torch.randn(n, 2)


def training_loss(model, sch, x0):
    t = sch.sample_t(x0.size(0))
    ab = sch.abar[t].unsqueeze(1)
    noise = torch.randn_like(x0)
    xt = ab.sqrt() * x0 + (1 - ab).sqrt() * noise
    x0_hat = model(xt, t)
    eps_hat = (xt - ab.sqrt() * x0_hat) / (1 - ab).sqrt()
    return ((eps_hat - noise) ** 2).clamp(max=100.0).mean()


def run(steps=500, batch=8, seed=0):
    torch.manual_seed(seed)
    sch, model = Schedule(), Denoiser()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    avg = None
    for step in range(steps):
        loss = training_loss(model, sch, two_moons(batch))
        opt.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        avg = loss.item() if avg is None else 0.97 * avg + 0.03 * loss.item()
        if step % 25 == 0:
            print(f"step {step:4d} loss(avg) {avg:.4f}")


if __name__ == "__main__":
    run()
