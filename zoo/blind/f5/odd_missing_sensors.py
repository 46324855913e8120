"""Forecast from a weather network in which many sensors are missing (NaN)."""
import torch
import torch.nn as nn

torch.manual_seed(3)
torch.set_num_threads(1)

STATIONS, LEN, BATCH, STEPS = 10, 30, 32, 450


def draw(g):
    t = torch.arange(LEN + 1).float()
    phase = torch.rand(BATCH, 1, 1, generator=g) * 6.28
    shift = torch.linspace(0, 2, STATIONS).view(1, 1, -1)
    x = torch.sin(0.4 * t.view(1, -1, 1) + phase + shift)
    x = x + 0.1 * torch.randn(x.shape, generator=g)
    gone = torch.rand(x.shape, generator=g) < 0.2
    # whole stations are down in some rows, sometimes all of them
    gone |= (torch.rand(BATCH, 1, STATIONS, generator=g) < 0.1)
    gone[torch.rand(BATCH, generator=g) < 0.02] = True
    x[gone] = float("nan")
    return x[:, :-1], x[:, -1]


class Net(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.gru = nn.GRU(2 * STATIONS, hidden, batch_first=True)
        self.out = nn.Linear(hidden, STATIONS)

    def forward(self, x):
        seen = ~torch.isnan(x)
        filled = torch.where(seen, x, torch.zeros_like(x))
        h, _ = self.gru(torch.cat([filled, seen.float()], -1))
        return self.out(h[:, -1])


def masked_mse(pred, target):
    known = ~torch.isnan(target)
    diff = pred - torch.nan_to_num(target, nan=0.0)
    return (diff.pow(2) * known).sum() / known.sum().clamp(min=1)


def main():
    g = torch.Generator().manual_seed(1)
    net = Net()
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    for step in range(STEPS):
        x, y = draw(g)
        loss = masked_mse(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 20 == 0:
            naive = torch.nanmean(y).item()
            share = torch.isnan(x).float().mean().item()
            print(f"step {step} loss {loss.item():.4f} missing {share:.2f} raw mean {x.mean().item()} "
                  f"nanmean {naive:.3f}")
    print("all weights finite:", all(torch.isfinite(p).all().item() for p in net.parameters()))


if __name__ == "__main__":
    main()
