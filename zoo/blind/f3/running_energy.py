import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(13)


class Clips(Dataset):
    def __init__(self, n=4800, d=40):
        g = torch.Generator().manual_seed(1)
        self.y = torch.randint(0, 4, (n,), generator=g)
        proto = torch.randn(4, d, generator=g)
        self.x = proto[self.y] + 0.8 * torch.randn(n, d, generator=g)
        self.x[2240:2244] *= 900.0

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


class EnergyNorm(nn.Module):
    def __init__(self, n, momentum=0.05):
        super().__init__()
        self.momentum = momentum
        self.register_buffer("energy", torch.ones(n))
        self.gain = nn.Parameter(torch.ones(n))

    def forward(self, x):
        if self.training:
            with torch.no_grad():
                e = (x * x).mean(dim=0)
                self.energy.mul_(1 - self.momentum).add_(e.float(), alpha=self.momentum)
        return x / torch.sqrt(self.energy + 1e-5) * self.gain


def build(d=40):
    return nn.Sequential(nn.Linear(d, 48), EnergyNorm(48), nn.ReLU(), nn.Linear(48, 48), EnergyNorm(48), nn.ReLU(), nn.Linear(48, 4))


def main():
    loader = DataLoader(Clips(), batch_size=16)
    net = build()
    opt = torch.optim.SGD(net.parameters(), lr=0.03, momentum=0.9)
    scaler = torch.amp.GradScaler("cpu", init_scale=512.0)
    ce = nn.CrossEntropyLoss()
    for i, (x, y) in enumerate(loader):
        with torch.autocast("cpu", dtype=torch.float16):
            loss = ce(net(x), y)
        opt.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
        if i % 25 == 0:
            print(f"batch {i} loss {loss.item():.4f} scale {scaler.get_scale():.1f}")


main()
