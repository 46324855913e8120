"""Denoising diffusion on a swiss roll with signal-to-noise weighting."""
import torch
import torch.nn as nn

torch.manual_seed(7)
T = 400
beta = torch.linspace(1e-6, 0.03, T)
abar = torch.cumprod(1 - beta, 0)


def roll(n, g):
    t = 1.5 + 3 * torch.rand(n, generator=g) * 3.14
    return torch.stack([t * t.cos(), t * t.sin()], 1) / 6 + 0.02 * torch.randn(n, 2, generator=g)


class Denoiser(nn.Module):
    def __init__(self, h=64):
        super().__init__()
        self.time = nn.Embedding(T, 16)
        self.f = nn.Sequential(nn.Linear(18, h), nn.SiLU(), nn.Linear(h, h), nn.SiLU(), nn.Linear(h, 2))

    def forward(self, x, t):
        return self.f(torch.cat([x, self.time(t)], 1))


def weight(t):
    snr = abar[t] / (1 - abar[t])
    return snr.sqrt()


def sample_loss(net, x, g):
    t = torch.randint(0, T, (len(x),), generator=g)
    eps = torch.randn(x.shape, generator=g)
    a = abar[t].unsqueeze(1)
    noisy = a.sqrt() * x + (1 - a).sqrt() * eps
    return (weight(t) * (net(noisy, t) - eps).pow(2).sum(1)).mean()


def describe(model):
    total = sum(p.numel() for p in model.parameters())
    trainable = sum(p.numel() for p in model.parameters() if p.requires_grad)
    print(f"parameters {total} trainable {trainable}")


def main():
    g = torch.Generator().manual_seed(7)
    net = Denoiser()
    describe(net)
    shadow = {k: v.clone() for k, v in net.state_dict().items()}
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    for step in range(500):
        loss = sample_loss(net, roll(64, g), g)
        opt.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        with torch.no_grad():
            for k, v in net.state_dict().items():
                shadow[k].lerp_(v, 0.01)
        if step % 20 == 0:
            print(f"step {step:4d} loss {loss.item():.3f} grad {norm.item():.2f}")


if __name__ == "__main__":
    main()
