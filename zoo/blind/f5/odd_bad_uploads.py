"""Spectra uploaded by users: the loop itself throws away batches that do not compute."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(20)
torch.set_num_threads(1)

POINTS, COMPOUNDS, BATCH, STEPS = 64, 6, 32, 700


class Uploads:
    def __init__(self):
        self.g = torch.Generator().manual_seed(24)
        self.lines = torch.rand(COMPOUNDS, 4, generator=self.g) * POINTS

    def batch(self):
        y = torch.randint(0, COMPOUNDS, (BATCH,), generator=self.g)
        axis = torch.arange(POINTS).float()
        peaks = torch.exp(-0.5 * ((axis - self.lines[y].unsqueeze(-1)) / 1.5) ** 2).sum(1)
        amount = 0.3 + torch.rand(BATCH, 1, generator=self.g)
        x = amount * peaks + 0.15 * torch.randn(BATCH, POINTS, generator=self.g)
        u = torch.rand(1, generator=self.g).item()
        if u < 0.03:
            x[3] = 0.0                      # empty file
        elif u < 0.05:
            x[5, 10] = float("inf")         # detector overflow
        return x, y


class Net(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(POINTS, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
                                 nn.Linear(width, COMPOUNDS))

    def forward(self, x):
        x = x / x.norm(dim=1, keepdim=True)
        return self.net(4.0 * x)


def main():
    source, net = Uploads(), Net()
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    thrown = 0
    for step in range(STEPS):
        x, y = source.batch()
        loss = F.cross_entropy(net(x), y)
        if not torch.isfinite(loss):
            thrown += 1
            print(f"step {step} loss {loss.item()} -> batch thrown away ({thrown} so far)")
            continue
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 25 == 0:
            print(f"step {step} loss {loss.item():.4f}")
    print("thrown away:", thrown, "weights finite:", all(torch.isfinite(p).all().item() for p in net.parameters()))


if __name__ == "__main__":
    main()
