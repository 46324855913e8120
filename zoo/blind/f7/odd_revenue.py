"""Company revenue (in cents, up to 1e15) from balance-sheet ratios; trained in log space."""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


def companies(n, g):
    x = torch.randn(n, 8, generator=g)
    log10 = 9 + 1.5 * x[:, 0] + 0.8 * torch.tanh(x[:, 1] * x[:, 2]) + 0.1 * torch.randn(n, generator=g)
    return x, (10 ** log10.double()).float()


def main(steps=350):
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(2)
    net = nn.Sequential(nn.Linear(8, 64), nn.SiLU(), nn.Linear(64, 1))
    opt = torch.optim.Adam(net.parameters(), lr=4e-3)
    for step in range(steps):
        x, revenue = companies(64, g)
        target = (torch.log(revenue) - 9 * math.log(10)) / math.log(10)
        pred = net(x).squeeze(-1)
        loss = F.mse_loss(pred, target)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 25 == 0:
            raw = (torch.exp(pred.detach() * math.log(10) + 9 * math.log(10)) - revenue).abs().mean()
            print(f"step {step:4d} log mse {loss.item():.4f} raw error {raw.item():.3e}")


if __name__ == "__main__":
    main()
