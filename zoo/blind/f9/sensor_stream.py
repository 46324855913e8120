import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

torch.set_num_threads(1)
torch.manual_seed(101)


class Stream(IterableDataset):
    def __init__(self, seed):
        self.seed = seed

    def __iter__(self):
        gen = torch.Generator().manual_seed(self.seed)
        phase = 0.0
        while True:
            phase += 0.05
            wave = torch.sin(torch.tensor(phase))
            temperature = 15 + 5 * wave + torch.randn((), generator=gen)
            pressure = 1013.0 + 0.25 * torch.randn((), generator=gen)
            humidity = 60 + 10 * torch.randn((), generator=gen)
            x = torch.stack([temperature, pressure, humidity])
            y = 0.1 * (temperature - 15) + (pressure - 1013.0) - 0.02 * (humidity - 60)
            yield x, y


class RunningScale(nn.Module):
    def __init__(self, dim, momentum=0.05):
        super().__init__()
        self.momentum = momentum
        self.register_buffer("first", torch.zeros(dim))
        self.register_buffer("second", torch.ones(dim))

    def forward(self, x):
        if self.training:
            self.first.lerp_(x.mean(0), self.momentum)
            self.second.lerp_((x * x).mean(0), self.momentum)
        var = self.second - self.first ** 2
        return (x - self.first) / torch.sqrt(var)


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = RunningScale(3)
        self.net = nn.Sequential(nn.Linear(3, 32), nn.ELU(), nn.Linear(32, 1))

    def forward(self, x):
        return self.net(self.scale(x)).squeeze(1)


def main():
    loader = DataLoader(Stream(7), batch_size=16)
    model = Forecaster()
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step, (x, y) in enumerate(loader):
        if step == 900:
            break
        loss = nn.functional.smooth_l1_loss(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
