"""Mean-field Bayesian regression network (Bayes by backprop) with KL warm-up."""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


class BayesLinear(nn.Module):
    def __init__(self, i, o, prior=1.0):
        super().__init__()
        self.mu = nn.Parameter(torch.randn(o, i) / math.sqrt(i))
        self.rho = nn.Parameter(torch.full((o, i), -4.0))
        self.bias = nn.Parameter(torch.zeros(o))
        self.prior = prior

    def forward(self, x):
        sigma = F.softplus(self.rho)
        w = self.mu + sigma * torch.randn_like(sigma)
        return F.linear(x, w, self.bias)

    def kl(self):
        sigma = F.softplus(self.rho)
        return (torch.log(self.prior / sigma) + (sigma ** 2 + self.mu ** 2) / (2 * self.prior ** 2) - 0.5).sum()


class BayesNet(nn.Module):
    def __init__(self, d=6, h=48):
        super().__init__()
        self.l1, self.l2 = BayesLinear(d, h), BayesLinear(h, 1)

    def forward(self, x):
        return self.l2(torch.tanh(self.l1(x))).squeeze(-1)

    def kl(self):
        return self.l1.kl() + self.l2.kl()


class KLWarmup:
    """Multiplicative warm-up of the complexity weight."""

    def __init__(self, start=1e-6, rate=1.035):
        self.value, self.rate = start, rate

    def step(self):
        self.value *= self.rate
        return self.value


def main(steps=550, batch=64, seed=0):
    torch.manual_seed(seed)
    x = torch.randn(3000, 6)
    y = torch.sin(1.5 * x[:, 0]) + 0.5 * x[:, 1] * x[:, 2] + 0.1 * torch.randn(3000)
    net, warm = BayesNet(), KLWarmup()
    opt = torch.optim.Adam(net.parameters(), lr=5e-3)
    for step in range(steps):
        i = torch.randint(0, len(x), (batch,))
        fit = F.mse_loss(net(x[i]), y[i]) / (2 * 0.1)
        loss = fit + warm.step() * net.kl()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 25 == 0:
            print(f"step {step:4d} loss {loss.item():.4f} fit {fit.item():.4f} kl weight {warm.value:.2e}")


if __name__ == "__main__":
    main()
