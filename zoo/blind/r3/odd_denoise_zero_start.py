import torch
import torch.nn as nn

torch.manual_seed(19)


class Corrector(nn.Module):
    """Predicts the noise; the last layer starts at zero so that the net starts as the identity."""

    def __init__(self, c=20):
        super().__init__()
        self.enc = nn.Conv2d(1, c, 3, stride=2, padding=1)
        self.mid = nn.Conv2d(c, c, 3, padding=1)
        self.dec = nn.ConvTranspose2d(c, c, 4, stride=2, padding=1)
        self.last = nn.Conv2d(c + 1, 1, 3, padding=1)
        nn.init.zeros_(self.last.weight)
        nn.init.zeros_(self.last.bias)

    def forward(self, x):
        h = torch.relu(self.enc(x))
        h = h + torch.relu(self.mid(h))
        h = torch.relu(self.dec(h))
        return x - self.last(torch.cat([h, x], dim=1))


def stripes(n):
    k = torch.arange(16.0)
    phase, pitch = torch.rand(n, 1, 1) * 6, 0.3 + 0.5 * torch.rand(n, 1, 1)
    tilt = torch.rand(n, 1, 1) * 2 - 1
    return torch.sin(pitch * (k[None, :, None] + tilt * k[None, None, :]) + phase)[:, None]


def main():
    net = Corrector()
    params = list(net.parameters())
    velocity = [torch.zeros_like(p) for p in params]
    test = stripes(200)
    test_in = test + 0.5 * torch.randn_like(test)
    for step in range(301):
        clean = stripes(24)
        loss = nn.functional.l1_loss(net(clean + 0.5 * torch.randn_like(clean)), clean)
        grads = torch.autograd.grad(loss, params)
        with torch.no_grad():
            for p, v, g in zip(params, velocity, grads):      # plain momentum by hand
                v.mul_(0.9).add_(g)
                p.sub_(0.1 * v)
        if step % 50 == 0:
            with torch.no_grad():
                mse = nn.functional.mse_loss(net(test_in), test).item()
            print(f"step {step:3d} l1 {loss.item():.4f} test mse {mse:.4f}")


main()
