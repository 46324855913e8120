"""Maximum-likelihood fit of a conditional covariance model for asset returns."""
import math

import torch
import torch.nn as nn

torch.manual_seed(14)
N = 6
TRI = torch.triu_indices(N, N, 1)


def simulate(steps):
    g = torch.Generator().manual_seed(99)
    stress = torch.sigmoid(torch.linspace(-6, 9, steps) + torch.randn(steps, generator=g))
    state = torch.stack([stress, torch.randn(steps, generator=g)], 1)
    market = torch.randn(steps, 1, generator=g)
    own = torch.randn(steps, N, generator=g)
    load = 0.15 + 0.8 * stress[:, None]
    returns = load * market + (1.02 - load) * own
    return state, returns


class CovNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(2, 24), nn.Tanh())
        self.logvar = nn.Linear(24, N)
        self.corr = nn.Linear(24, TRI.shape[1])

    def forward(self, s):
        h = self.trunk(s)
        sd = (0.5 * self.logvar(h)).exp()
        rho = torch.tanh(self.corr(h))
        c = torch.eye(N).expand(len(s), N, N).clone()
        c[:, TRI[0], TRI[1]] = rho
        c[:, TRI[1], TRI[0]] = rho
        return sd.unsqueeze(2) * c * sd.unsqueeze(1)


def nll(cov, r):
    maha = (r * torch.linalg.solve(cov, r)).sum(1)
    return 0.5 * (torch.logdet(cov) + maha + N * math.log(2 * math.pi)).mean()


def main():
    state, returns = simulate(12000)
    net = CovNet()
    opt = torch.optim.Adam(net.parameters(), lr=1.5e-2)
    batch = 40
    for step in range(len(state) // batch):
        sl = slice(step * batch, (step + 1) * batch)
        cov = net(state[sl])
        loss = nll(cov, returns[sl])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 15 == 0:
            print(f"day {step * batch:6d} nll {loss.item():.4f}")


if __name__ == "__main__":
    main()
