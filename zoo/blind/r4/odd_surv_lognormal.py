"""Parametric survival (log-normal AFT) with durations in years around 0.02: log-densities are positive, the loss is negative."""
import math
import torch
from torch import nn


def simulate(n, g):
    x = torch.rand(n, 5, generator=g) * 2 - 1
    mu = -4 + x[:, 0] - 0.8 * x[:, 1] ** 2 + 0.6 * x[:, 2] * x[:, 3]
    t = torch.exp(mu + 0.3 * torch.randn(n, generator=g))
    c = torch.exp(-3.4 + 0.8 * torch.randn(n, generator=g))
    return x, torch.minimum(t, c), (t <= c).float()


class AFT(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(5, 40), nn.Softplus(), nn.Linear(40, 2))

    def nll(self, x, t, e):
        mu, raw = self.net(x).unbind(1)
        mu, log_s = mu - 3, raw.clamp(-3, 2)
        z = (t.log() - mu) / log_s.exp()
        log_pdf = -0.5 * z ** 2 - log_s - t.log() - 0.5 * math.log(2 * math.pi)
        log_surv = torch.special.log_ndtr(-z)
        return -(e * log_pdf + (1 - e) * log_surv).mean()


def main():
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(0)
    train, val = simulate(1500, g), simulate(400, g)
    model = AFT()
    opt = torch.optim.Adam(model.parameters(), lr=5e-3, betas=(0.9, 0.99))
    for epoch in range(25):
        for i in torch.randperm(1500).split(75):
            loss = model.nll(*(v[i] for v in train))
            opt.zero_grad()
            loss.backward()
            opt.step()
        if epoch % 3 == 0:
            with torch.no_grad():
                print(f"epoch {epoch} train {loss.item():.3f} val {model.nll(*val).item():.3f}")


main()
