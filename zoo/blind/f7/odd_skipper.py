"""Log-normal volume model on a market feed; corrupt messages are filtered by a loss check."""
import torch
import torch.nn as nn


def feed(step, g):
    x = torch.randn(40, 6, generator=g)
    vol = torch.exp(0.5 * x[:, 0] - 0.4 * x[:, 1] ** 2 + 0.1 * torch.randn(40, generator=g))
    if step % 45 == 44:
        vol[int(torch.randint(0, 40, (1,), generator=g))] = 0.0
    return x, vol


def main(steps=420):
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(8)
    net = nn.Sequential(nn.Linear(6, 64), nn.Tanh(), nn.Linear(64, 2))
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    bad = 0
    for step in range(steps):
        x, vol = feed(step, g)
        mu, raw = net(x).unbind(1)
        scale = nn.functional.softplus(raw) + 0.05
        loss = (0.5 * ((torch.log(vol) - mu) / scale) ** 2 + torch.log(scale)).mean()
        if not torch.isfinite(loss):
            bad += 1
            continue
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 20 == 0:
            print(f"step {step:4d} nll {loss.item():.4f} filtered {bad}")


if __name__ == "__main__":
    main()
